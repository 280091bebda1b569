// The slices of a pair: what lies over the fixed image, how far, and which slice. All of it is state of the style.
(() => {
  "use strict";
  const sight = document.querySelector(".sight");
  if (!sight) return;
  const wipe = document.getElementById("wipe");
  const outlines = document.getElementById("outlines");
  const buttons = [...sight.querySelectorAll(".layer")];
  const planes = [...sight.querySelectorAll(".plane")];

  const setWipe = (percent) => {
    wipe.value = Math.max(0, Math.min(100, percent));
    sight.style.setProperty("--wipe", wipe.value + "%");
  };
  const setLayer = (button) => {
    sight.dataset.layer = button.dataset.layer;
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    document.getElementById("layer-name").textContent = button.dataset.name;
  };
  const setOutlines = () => sight.classList.toggle("with-outlines", Boolean(outlines) && outlines.checked);
  const setSlice = (plane, index) => {
    const slider = plane.querySelector(".slice");
    if (!slider) return;
    slider.value = index;
    plane.style.setProperty("--k", slider.value);
  };

  wipe.addEventListener("input", () => setWipe(wipe.value));
  if (outlines) outlines.addEventListener("change", setOutlines);
  for (const button of buttons) button.addEventListener("click", () => setLayer(button));
  for (const plane of planes) {
    const slider = plane.querySelector(".slice");
    if (slider) slider.addEventListener("input", () => setSlice(plane, slider.value));
    const stage = plane.querySelector(".stage");
    const follow = (event) => {
      const box = stage.getBoundingClientRect();
      setWipe((100 * (event.clientX - box.left)) / box.width);
    };
    stage.addEventListener("pointerdown", (event) => {
      stage.setPointerCapture(event.pointerId);
      follow(event);
    });
    stage.addEventListener("pointermove", (event) => {
      if (stage.hasPointerCapture(event.pointerId)) follow(event);
    });
  }

  document.addEventListener("keydown", (event) => {
    const at = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || ["CANVAS", "SELECT"].includes(at.tagName)) return;
    // A slider that has the focus moves by itself.
    if (at.tagName === "INPUT" && at.type === "range" && event.key.startsWith("Arrow")) return;
    const steps = { ArrowLeft: -5, ArrowRight: 5 };
    if (event.key in steps) setWipe(Number(wipe.value) + steps[event.key]);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      for (const plane of planes) {
        const slider = plane.querySelector(".slice");
        if (slider) setSlice(plane, Number(slider.value) + (event.key === "ArrowUp" ? 1 : -1));
      }
    } else if (buttons[Number(event.key) - 1]) setLayer(buttons[Number(event.key) - 1]);
    else if (event.key === "c" && outlines) {
      outlines.checked = !outlines.checked;
      setOutlines();
    } else return;
    event.preventDefault();
  });

  setWipe(50);
  setOutlines();
})();
