"""What every report of a Broad Evaluation says, whatever the results: claims, conditions, metrics, method, context."""

from __future__ import annotations

from assay.broad.conditions import CONDITIONS

CLAIMS = (
    "Central claim (6 v 3): a deep learning system outperforms a state-of-the-art shallow classifier learned off "
    "preprocessed data.",
    "Comparable in quality (6 v 1): the deep learning system is not significantly outperformed by the state-of-the-art "
    "shallow classifier on hand-engineered features, and the data exclude a loss of the margin δ or more.",
    "Not claimed: performance better than a state-of-the-art shallow classifier on hand-engineered, modality-specific "
    "features.",
    "The claims are neither system- nor task-specific: the same rule decides for every team and every task.",
)
PARTS = {
    "FE": "the evaluators' feature extractor",
    "PRE": "the team's preprocessor",
    "SUL": "the team's learner with one layer, trained without labels",
    "DUL": "the team's deep learner, trained without labels",
    "SOTA": "the evaluators' state-of-the-art shallow classifier",
    "SLC": "the team's simple linear classifier",
}
PURPOSE = {
    1: "What hand-engineered features give: the level to be comparable with.",
    2: "The same features with a simple classifier: isolates the effect of the classifier.",
    3: "The baseline of the central claim: no hand-engineered features, no unsupervised learning.",
    4: "What the simple classifier gives without learned features: does the learner learn anything?",
    5: "What one layer of learned features gives: does depth help?",
    6: "The focal condition: deep, unsupervised learning.",
}
GLOSSARY = tuple(
    (f"{c.number} {c.name}", " → ".join(PARTS[part] for part in c.name.split("/")), PURPOSE[c.number])
    for c in CONDITIONS
)
_BOXES = {
    "FE": ("feature extractor", "ours"),
    "PRE": ("preprocessor", "theirs"),
    "SUL": ("learner with one layer, no labels", "theirs"),
    "DUL": ("deep learner, no labels", "theirs"),
    "SOTA": ("state-of-the-art classifier", "ours"),
    "SLC": ("simple linear classifier", "theirs"),
}
FLOW_OF_CONDITIONS = tuple(
    (
        f"{c.number} {c.name}",
        (("data", ""), *(_BOXES[part] for part in c.name.split("/")), ("prediction", "")),
    )
    for c in CONDITIONS
)
FLOW_OF_PROCESS = (
    ("Specify", (("domains and tasks", "ours"), ("technology claims", "theirs"), ("conditions", "ours"),
                 ("metrics, protocol, analysis", "ours"))),
    ("Build", (("preprocessors and simple classifiers", "theirs"), ("deep learning systems", "theirs"),
               ("extractors, state-of-the-art classifiers", "ours"), ("test harness and trial system", "ours"))),
    ("Conduct", (("frozen systems meet the harness", "theirs"), ("all runs on the same partitions", "ours"),
                 ("duplicate at the teams' sites (optional)", "theirs"))),
    ("Report", (("analysis", "ours"), ("draft report", "ours"), ("comments of the teams", "theirs"),
                ("final report", "ours"))),
)  # fmt: skip

METRICS = (
    "Video: average 11-point precision of each class. Clips are ranked by falling confidence; p(k) is the highest "
    "precision among all ranks with recall of at least k, for k = 0, 0.1, …, 1; the value is the mean of the eleven. "
    "MAP is its mean over classes. Higher is better.",
    "Example: truth 1 0 1 1 1 with confidences 0.9 0.8 0.6 0.2 0.2. The recall of the first three is 2/4 = 0.5; "
    "p(0) = 1.0 and p(0.4) = 0.8. The value is (3 · 1 + 8 · 0.8)/11 = 0.855.",
    "Text: root mean squared error of the predicted rating, between 1 and 5. mRMSE is its mean over ratings within a "
    "fold. Lower is better. Always predicting 3 when all five ratings are equally frequent gives √2 = 1.414.",
    "Standard errors are s/√n with n − 1 in s: over classes for a fold, over folds for the grand mean.",
    "Equal confidences are admitted together, so the order of the test file cannot matter. Speed and space are "
    "recorded, not ranked; metrics and tasks are never combined into one ranking.",
)

PLAN_RULE = (
    "Plan rule: two systems are said to differ when their intervals mean ± standard error over folds do not overlap. "
    "It is printed because the plan asks for it. It is not a 5 % test: all classifiers are scored on one common test "
    "set, whose chance the spread over folds cannot show. In simulations of two systems that are equally good it "
    "raised false alarms in 8 to 26 % of video-like and 42 to 70 % of text-like evaluations."
)
TWO_COMPONENTS = (
    "Differences are signed so that positive is better, whatever the metric. Two-component interval (95 %): the mean "
    "difference over K folds ± t · √(s²/K + v), s² its variance over folds and "
    "v that of the mean over resampled test sets, the same resample for both systems and all folds. Whole groups "
    "(restaurants, films) are drawn where there are any; a review that is tested on for several ratings is drawn for "
    "all of them. t is the quantile of Student's t with the degrees of freedom of both variances (Welch and "
    "Satterthwaite). In simulations of equal systems it was wrong in 3 to 7 % of cases, with few groups too; but in "
    "11 % where a dozen groups were both trained and tested on, which no resampling of the test set can see. Verdicts "
    "rest on it."
)
STATISTICS = (
    PLAN_RULE,
    TWO_COMPONENTS,
    "Holm: p values adjusted for the planned contrasts of a task, so that the chance of any false alarm among them "
    "stays at 5 %. Claims that one condition outperforms another rest on them. A contrast whose run is missing still "
    "counts.",
    "Comparable, not inferior: the lower end of the interval is above −δ, the margin registered before the first "
    "result. The plan's “not significantly outperformed” asks only for the absence of a significant loss, which little "
    "data always gives; so a comparable system must also exclude a loss of δ. With few groups it "
    "must do so in the 97.5 % interval. They are not adjusted for many tests, "
    "which would make lack of evidence count in favour.",
    "Smallest detectable difference: the true difference that a single test at 5 % finds with a probability of 80 %; "
    "adjusted for the planned contrasts it takes a larger one. A contrast without a finding says little about smaller "
    "ones.",
    "Ranking: by condition 6, one for each metric and task. Stability is the share of resampled test sets and folds "
    "that keep the order; tied means that the interval of the difference covers 0.",
)
PROTOCOL = (
    "The plan's folds are used the other way round from ordinary cross-validation: a classifier is trained on one "
    "fold, tuned on all others (and, for text, on the left-over reviews) and scored on the one test set. There is one "
    "replication. Every system and every condition uses the same partition. The learner of conditions 5 and 6 sees "
    "training and validation inputs without labels, and never a test instance; nothing learns during testing."
)

# (system, data, number, source): none of them was checked against its source.
PUBLISHED = (
    ("HOG3D, dense, bag of features, χ² SVM", "Hollywood2, MAP", "45.3 %", "Wang et al., BMVC 2009"),
    ("HOG/HOF; HOG; HOF, dense", "Hollywood2, MAP", "47.4; 39.4; 45.5 %", "Wang et al., BMVC 2009"),
    ("HOG3D at Harris3D; Cuboids; Hessian points", "Hollywood2, MAP", "43.7; 45.7; 41.3 %", "Wang et al., BMVC 2009"),
    ("Convolutional gated RBM, sparse coding, SVM", "Hollywood2, MAP", "46.6 %", "Taylor et al., ECCV 2010"),
    ("Stacked convolutional ISA", "Hollywood2, MAP", "53.3 %", "Le et al., CVPR 2011"),
    ("Word vectors + more text + bag of words; bag of words; LDA", "IMDB, accuracy", "88.89; 87.80; 67.42 %",
     "Maas et al., ACL 2011"),
    ("Rectifier denoising autoencoders: none; 1; 3 layers", "OpenTable, RMSE", "0.885; 0.807; 0.746",
     "Glorot, Bordes & Bengio, AISTATS 2011"),
    ("tanh denoising autoencoders, 3 layers", "OpenTable, RMSE", "0.774", "Glorot, Bordes & Bengio, AISTATS 2011"),
)  # fmt: skip
PUBLISHED_WARNING = (
    "Recalled, not checked: these numbers were written down from memory of the papers and were not compared with "
    "their text. They were obtained with the data sets' own splits and full training sets, so they are context, not "
    "something to be beaten here, where each classifier is trained on one fold."
)
LDA_WARNING = (
    "The plan's state of the art for text, latent Dirichlet allocation, is a weak one: on a neighbouring sentiment "
    "task it is recalled (not checked) 20 percentage points below a plain bag of words. To outperform it is less than "
    "the words “state of the art” suggest."
)
DOCUMENTS = {
    "architecture": "architecture figure with prose",
    "pseudocode": "pseudocode with prose",
    "example": "detailed example",
    "source": "commented source",
}
