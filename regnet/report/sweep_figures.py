"""The pictures of a sweep, as SVG to put into a page."""

from collections.abc import Collection, Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from regnet.report.svg import BLUE, GREY, ORANGE, svg
from regnet.report.svg import figure as new_figure
from regnet.sweeps import Choice, Interval, Trial


def history(trials: Sequence[Trial]) -> str:
    """The first cost of each finished trial, and the best so far."""
    figure, axes = new_figure(6.4, 3.2)
    numbers = [trial.number for trial in trials]
    costs = [_cost(trial) for trial in trials]
    axes.plot(numbers, costs, "o", color=BLUE, label="trial")
    best = [min(costs[: index + 1]) for index in range(len(costs))]
    axes.step(numbers, best, where="post", color=ORANGE, label="best so far")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="trial", ylabel=next(iter(trials[0].costs)))
    axes.legend(frameon=False)
    return svg(figure)


def front(points: Mapping[int, Sequence[float]], names: Sequence[str], chosen: Collection[int]) -> str:
    """The first two costs against each other; the numbers of the trials on the front, whose line joins them."""
    figure, axes = new_figure(6.4, 3.6)
    for number, (x, y, *_) in points.items():
        axes.plot(x, y, "o", color=ORANGE if number in chosen else GREY)
        if number in chosen:
            axes.annotate(str(number), (x, y), xytext=(5, 4), textcoords="offset points")
    if len(names) == 2:
        line = sorted(tuple(points[number]) for number in chosen)
        axes.step([x for x, _ in line], [y for _, y in line], where="post", color=ORANGE, lw=1)
    axes.set(xlabel=names[0], ylabel=names[1])
    return svg(figure)


def importance(shares: Mapping[str, float]) -> str:
    """How much of the spread each key explains."""
    figure, axes = new_figure(6.4, 0.7 + 0.4 * len(shares))
    keys = sorted(shares, key=lambda key: shares[key])
    axes.barh(keys, [shares[key] for key in keys], color=BLUE)
    axes.set(xlabel="share of the spread of the first cost", xlim=(0, 1))
    return svg(figure)


def slices(trials: Sequence[Trial], space: Mapping[str, Choice | Interval]) -> str:
    """The first cost against each key."""
    figure = Figure(figsize=(3.2 * len(space), 3.0), layout="constrained")
    for place, (key, choice) in enumerate(space.items(), 1):
        axes = figure.add_subplot(1, len(space), place)
        numeric = isinstance(choice, Interval)
        at = [float(trial.values[key]) if numeric else trial.values[key] for trial in trials]
        axes.plot(at, [_cost(trial) for trial in trials], "o", color=BLUE)
        if isinstance(choice, Interval) and choice.log:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(key.removeprefix("loss.terms."))
        axes.tick_params(axis="x", rotation=0 if numeric else 15)
        if place == 1:
            axes.set_ylabel(next(iter(trials[0].costs)))
    return svg(figure)


def _cost(trial: Trial) -> float:
    return next(iter(trial.costs.values()))
