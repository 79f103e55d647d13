/** The console: a frame with the pages in it, keys, and who is signed in. */
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, connection, ONCE, Refused, signedOut, useLive, type Schemas } from "./api";
import { startEvents } from "./events";
import { toggleZone, zone } from "./format";
import { startKeys } from "./keys";
import { BillsPage } from "./pages/bills";
import { DecisionsPage } from "./pages/decisions";
import { GraphPage } from "./pages/graph";
import { LettersPage } from "./pages/letters";
import { LevelsPage } from "./pages/levels";
import { MachinesPage } from "./pages/machines";
import { OverviewPage } from "./pages/overview";
import { PlanPage } from "./pages/plan";
import { WhatIfPage } from "./pages/what-if";
import { Empty } from "./parts/parts";
import { place, startRouter } from "./router";
import { startTheme, theme, toggleTheme } from "./theme";
import "./style.css";

const PAGES = [
  { path: "/overview", title: "Overview", key: "o", page: OverviewPage },
  { path: "/graph", title: "Graph", key: "d", page: GraphPage },
  { path: "/plan", title: "Plan", key: "p", page: PlanPage },
  { path: "/bills", title: "Bills", key: "b", page: BillsPage },
  { path: "/levels", title: "Service levels", key: "s", page: LevelsPage },
  { path: "/letters", title: "Dead letters", key: "l", page: LettersPage },
  { path: "/decisions", title: "Decisions", key: "w", page: DecisionsPage },
  { path: "/what-if", title: "What if", key: "i", page: WhatIfPage },
  { path: "/machines", title: "Machines", key: "m", page: MachinesPage },
];

function App() {
  const page = PAGES.find((one) => one.path === place.value.path);
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  const title = page?.title ?? "Not here";
  useEffect(() => {
    document.title = `${title} · Headgate`;
    if (!first.current) heading.current?.focus({ preventScroll: true });
    first.current = false;
  }, [title]);
  return (
    <>
      <a class="skip" href="#main">Skip to the page</a>
      <header class="top">
        <a class="brand" href="/overview"><img src="/favicon.svg" alt="" width="22" height="22" /> Headgate</a>
        <nav aria-label="Pages">
          {PAGES.map((one) => (
            <a href={one.path} aria-current={one === page ? "page" : undefined} title={`g ${one.key}`}>{one.title}</a>
          ))}
        </nav>
        <div class="tools">
          {connection.value === "lost" && <span class="tag tag-bad" role="status">no connection</span>}
          <button type="button" title="t" onClick={toggleZone}>{zone.value === "UTC" ? "UTC" : "local time"}</button>
          <button type="button" onClick={toggleTheme}>{theme.value === "dark" ? "light" : "dark"}</button>
          <button type="button" title="?" onClick={help}>keys</button>
          <Who />
        </div>
      </header>
      <main id="main">
        <h1 ref={heading} tabIndex={-1}>{title}</h1>
        {signedOut.value ? <SignIn /> : page ? <page.page key={page.path} /> : <NotHere />}
      </main>
      <Help />
    </>
  );
}

function Who() {
  const me = useLive<Schemas["Me"]>(signedOut.value ? null : "/me", ONCE).value.data;
  useEffect(() => {
    if (me) startEvents();
  }, [me]);
  return me ? <span class="note who" title={me.teams.join(", ")}>{me.name}, {me.role}</span> : null;
}

function SignIn() {
  const problem = useSignal("");
  return (
    <form
      class="sign-in"
      onSubmit={async (event) => {
        event.preventDefault();
        const token = new FormData(event.currentTarget).get("token");
        try {
          await ask("/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
          signedOut.value = false;
        } catch (error) {
          problem.value = error instanceof Refused ? error.message : "The server cannot be reached.";
        }
      }}
    >
      <h2>Sign in</h2>
      <p>Ask who runs this engine for a token.</p>
      <label>Token <input name="token" type="password" autocomplete="current-password" required /></label>
      <button type="submit" class="main">Sign in</button>
      {problem.value && <p class="problem" role="alert">{problem.value}</p>}
    </form>
  );
}

function NotHere() {
  return <Empty title="There is no such page"><p><a href="/overview">Go to the overview</a></p></Empty>;
}

function help(): void {
  document.querySelector<HTMLDialogElement>("dialog")?.showModal();
}

function Help() {
  const keys: [string, string][] = [
    ["/", "search or filter"], ["j, k", "next and previous row"], ["Enter", "open the row"], ["t", "UTC or local time"], ["?", "these keys"],
    ...PAGES.map((one): [string, string] => [`g ${one.key}`, one.title]),
  ];
  return (
    <dialog aria-label="Keys">
      <h2>Keys</h2>
      <dl class="facts">{keys.map(([key, what]) => <div><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <form method="dialog"><button type="submit" class="main">Close</button></form>
    </dialog>
  );
}

startTheme();
startRouter();
startKeys(Object.fromEntries(PAGES.map((one) => [one.key, one.path])), help);
render(<App />, document.getElementById("app")!);
