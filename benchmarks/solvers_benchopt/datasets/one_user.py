"""One user, 100,000 negatives, 1,000 positives: top 500 (T), all negatives (L)."""

from benchmark_utils.tasks import TASKS
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """One user, 100,000 negatives, 1,000 positives: top 500 (T), all negatives (L)."""

    name = "one_user"
    parameters = {"task": ["T", "L"], "seed": [0]}

    def get_data(self):
        task = TASKS[self.task]
        lists = task.generate(self.seed)
        return {"X": lists.X, "y": lists.y, "groups": lists.groups, "k": task.k}
