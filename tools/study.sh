#!/usr/bin/env bash
# What `make study` runs: eight trials, two at a time, cut off once and gone on with; the page; the best on the real pair.
# Usage: tools/study.sh [FOLDER] [SECONDS UNTIL THE INTERRUPTION]
set -euo pipefail
study=${1:-study}
after=${2:-60}
words=(-m hparams_search=optuna hydra/launcher=joblib hydra.launcher.n_jobs=2 hydra.sweeper.jobs=2
    hydra.sweeper.trials=8 callbacks=quiet trainer.max_epochs=4 data.pairs=48 "hydra.sweep.dir=$study")

timeout --signal INT --kill-after 20 "$after" python -m regnet train "${words[@]}" || echo "cut off after $after s"
python -m regnet train "${words[@]}"
python -m regnet report sweep "$study"
best=$(python -c 'import json, sys; print(json.load(open(sys.argv[1] + "/results.json"))["best"])' "$study")
sample=$(python -c 'from regnet.data import sample_path; print(sample_path("colin27_t1").parent)')
python -m regnet register --moving "$sample"/colin27_t1.nii.gz --fixed "$sample"/mni152_t1.nii.gz --model "$study/$best" \
    --moved "$study/moved.nii.gz" --figure "$study/figure.png" --overwrite
echo "done in $SECONDS s"
