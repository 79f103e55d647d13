"""STATS row by row: block averages, smoothed values with the line through them, distinct senders; 20 to a chart."""

__all__ = ["Distinct", "Series"]

BLOCK, SMOOTHED, TRAINED, CHARTED = 5, 5, 10, 20


class Series:
    """What is remembered of one field of one sender."""

    def __init__(self, state=None):
        self.block, self.averages, self.last, self.line, self.charted = state or ([], [], [], [], [])

    def state(self):
        return self.block, self.averages, self.last, self.line, self.charted

    def add(self, value):
        """Charts that a value completes: their kind and their lines."""
        if value is None:
            return
        self.block.append(value)
        if len(self.block) == BLOCK:
            total = 0.0
            for one in self.block:
                total += one
            self.averages.append(total / BLOCK)
            self.block = []
            if len(self.averages) == CHARTED:
                yield "average", {"average": self.averages}
                self.averages = []
        self.last = [*self.last, value][-SMOOTHED:]
        smoothed = sum(self.last) / len(self.last)
        self.line = [*self.line, smoothed][-TRAINED:]
        if len(self.line) == TRAINED:
            predicted(self.line)
            self.charted.append((value, smoothed))
            if len(self.charted) == CHARTED:
                values, smooth = zip(*self.charted, strict=True)
                yield "predict", {"value": list(values), "smoothed": list(smooth)}
                self.charted = []


def predicted(line, ahead=10):
    """The next values on the line through some."""
    middle = (len(line) - 1) / 2
    spread = sum((x - middle) ** 2 for x in range(len(line)))
    mean = sum(line) / len(line)
    slope = sum((x - middle) * y for x, y in enumerate(line)) / spread
    return [mean + slope * (x - middle) for x in range(len(line), len(line) + ahead)]


class Distinct:
    """What is remembered of all senders of one field."""

    def __init__(self, state=None):
        seen, self.counts = state or ([], [])
        self.seen = set(seen)

    def state(self):
        return list(self.seen), self.counts

    def add(self, sender):
        self.seen.add(sender)
        self.counts.append(float(len(self.seen)))
        if len(self.counts) == CHARTED:
            yield "distinct", {"distinct": self.counts}
            self.counts = []
