from headgate import Flow

flow = Flow("word_count", owner="ana", description="How often each word has come so far")

lines = flow.source("read_files", id="lines", path="data/texts/*.txt", format="text")
words = flow.task("tokenise", id="words")
totals = flow.task("count", id="totals", key=["word"])
show = flow.sink("write_console", id="show")

lines >> words >> totals >> show
