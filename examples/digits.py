"""Digits without graphs: a logistic regression on the pixels, on the splits of `haarpool train`.

python examples/digits.py
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from haarpool.datasets import read_graphs
from haarpool.datasets.splits import make_splits

REPEATS = 3

pixels, digits = load_digits(return_X_y=True)
accuracy = []
for split in make_splits("stratified", read_graphs("digits"), repeats=REPEATS):
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(pixels[split.train], digits[split.train])
    accuracy.append(100 * model.score(pixels[split.test], digits[split.test]))
mean, std = np.mean(accuracy), np.std(accuracy, ddof=1)
print(f"logistic regression: test accuracy {mean:.1f} ± {std:.1f} % ({REPEATS} repeats)")
print(f"the same splits for a network: haarpool train digits --repeats {REPEATS}")
