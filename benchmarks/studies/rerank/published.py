"""What neural models reach on the official split of Gowalla in the public IR-Benchmark data."""

# By the numbers of users, items, training and test rows, as the collection's summary lists them:
# name, source, and NDCG@20 and recall@20 of the simplest and of the best models.
PUBLISHED = {
    (29_858, 40_988, 810_128, 217_336): (
        "gowalla",
        "Yang et al., Breaking the top-K barrier (KDD 2025), Table 2",
        {
            "MF, BPR": (0.1111, 0.1355),
            "MF, softmax loss": (0.1624, 0.2064),
            "MF, SL@20": (0.1709, 0.2121),
            "LightGCN, BPR": (0.1402, 0.1745),
            "LightGCN, SL@20": (0.1729, 0.2128),
            "XSimGCL, SL@20": (0.1717, 0.2095),
        },
    ),
}
