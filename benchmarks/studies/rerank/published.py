"""What neural models reach on the official splits of the public IR-Benchmark data."""

_KDD = "Yang et al., Breaking the top-K barrier (KDD 2025), "
_TOP_K = _KDD + "Table 2"
_SMALL = _KDD + "Table 18"
_PSL = "Yang et al., PSL (NeurIPS 2024), Table 1"

# By the numbers of users, items, training and test rows, as the collection's summary lists them:
# name, source, and NDCG@20 and recall@20 of the simplest and of the best models.
PUBLISHED = {
    (1_974, 1_200, 37_784, 10_405): (
        "amazon2014-health",
        _TOP_K,
        {
            "MF, BPR": (0.1234, 0.1627),
            "MF, softmax loss": (0.1261, 0.1719),
            "MF, SL@20": (0.1390, 0.1823),
            "LightGCN, BPR": (0.1203, 0.1618),
            "LightGCN, SL@20": (0.1371, 0.1783),
            "XSimGCL, SL@20": (0.1332, 0.1753),
        },
    ),
    (13_455, 8_360, 182_398, 52_123): (
        "amazon2014-electronic",
        _TOP_K,
        {
            "MF, BPR": (0.0527, 0.0816),
            "MF, softmax loss": (0.0529, 0.0821),
            "MF, SL@20": (0.0590, 0.0901),
            "LightGCN, BPR": (0.0524, 0.0813),
            "LightGCN, SL@20": (0.0591, 0.0903),
            "XSimGCL, SL@20": (0.0571, 0.0869),
        },
    ),
    (29_858, 40_988, 810_128, 217_336): (
        "gowalla",
        _TOP_K,
        {
            "MF, BPR": (0.1111, 0.1355),
            "MF, softmax loss": (0.1624, 0.2064),
            "MF, SL@20": (0.1709, 0.2121),
            "LightGCN, BPR": (0.1402, 0.1745),
            "LightGCN, SL@20": (0.1729, 0.2128),
            "XSimGCL, SL@20": (0.1717, 0.2095),
        },
    ),
    (135_109, 115_172, 3_180_699, 861_683): (
        "amazon2014-book",
        _TOP_K,
        {
            "MF, BPR": (0.0453, 0.0665),
            "MF, softmax loss": (0.1210, 0.1559),
            "MF, SL@20": (0.1269, 0.1612),
            "LightGCN, BPR": (0.0678, 0.0984),
            "LightGCN, SL@20": (0.1280, 0.1625),
            "XSimGCL, SL@20": (0.1277, 0.1624),
        },
    ),
    (939, 1_016, 63_944, 16_449): (
        "movielens-100k",
        _SMALL,
        {
            "MF, LambdaRank": (0.3043, 0.3077),
            "MF, LambdaLoss": (0.3460, 0.3425),
            "MF, LambdaLoss@20": (0.3466, 0.3418),
            "MF, SL@20": (0.3677, 0.3580),
        },
    ),
    (5_875, 9_852, 184_106, 48_932): (
        "food",
        _SMALL,
        {
            "MF, LambdaRank": (0.0377, 0.0520),
            "MF, LambdaLoss": (0.0374, 0.0515),
            "MF, LambdaLoss@20": (0.0382, 0.0530),
            "MF, SL@20": (0.0465, 0.0635),
        },
    ),
    (26_968, 18_563, 599_903, 163_054): (
        "amazon2014-movie",
        _PSL,
        {
            "MF, BPR": (0.0608, 0.0916),
            "MF, softmax loss": (0.0929, 0.1286),
            "MF, PSL": (0.0945, 0.1299),
            "LightGCN, PSL": (0.0953, 0.1300),
            "XSimGCL, PSL": (0.0935, 0.1313),
        },
    ),
}
