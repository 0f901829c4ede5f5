"""``reproduce``: tables and figures of the paper, and our own studies, a module each."""

from structsvm_papk.cli._shared.recording import app_of

app = app_of(
    "structsvm_papk.cli.reproduce",
    "Tables and figures of the paper, and our own studies.",
    {
        "The paper": {
            "table1": "The metrics of Table 1 on its five rankings, beside the published values.",
            "table2": "GD-Avg against SGD@k-avg and SVM-pAUC on simulated lists.",
            "figure1": "Surrogates under margin conditions.",
            "table3": "Mean pAp@k on held-out items of recommender data, all methods.",
            "synthetic-movielens": "Write invented ratings to try table3 without the real data.",
        },
        "Our own studies": {
            "coverage": "Coverage and width of every interval on laws whose risk is known.",
            "degenerate": "What ClippedRamp gains where every convex optimum is zero.",
            "rerank": "NDCG, recall and pAp at k of recommenders, and of re-rankers.",
            "synthetic-interactions": "Write invented interactions to try rerank with.",
            "distinguishability": "From how few users a metric tells two close rankers apart.",
        },
    },
)
