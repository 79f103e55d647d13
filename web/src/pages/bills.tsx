/** Who pays what, opened down to the task and to those who share it. */
import { ONCE, useLive, type Schemas, type When } from "../api";
import { moment, money, share } from "../format";
import { Bar, Card, Empty, Scroll, Team, Waiting } from "../parts/parts";
import { SortedTable } from "../parts/table";
import { choose, here, param } from "../router";
import { giveColours } from "../teams";

type Bill = Schemas["BillAnswer"];
type Lines = Schemas["BillLines"];

const WHEN: When = { on: ["rates", "plan"], leastMs: 15000 };

export function BillsPage() {
  const live = useLive<Bill>("/bill", WHEN).value;
  if (live.problem?.condition === "NOTHING_TO_BILL")
    return (
      <Empty title="Nothing to bill yet">
        <p>Bills count whole seconds of what runs. <a href="/plan">Submit a dataflow</a>, and come back in a moment.</p>
      </Empty>
    );
  return <Waiting live={live}>{(bill) => <Shown bill={bill} />}</Waiting>;
}

/** Amounts are decimals with four places; whole units add up exactly. */
function units(amount: string): number {
  return Math.round(Number(amount) * 10000);
}

function Shown({ bill }: { bill: Bill }) {
  giveColours(bill.owners.map((one) => one.owner));
  const rows = bill.dataflows.filter((row) => !param("team") || row.owner === param("team"));
  const paid = bill.dataflows.reduce((sum, row) => sum + units(row.cost), 0);
  const alone = bill.dataflows.reduce((sum, row) => sum + units(row.alone), 0);
  const adds = paid + units(bill.idle) === units(bill.total);
  const most = Math.max(...bill.dataflows.map((row) => Number(row.alone)), 1e-9);
  const cash = (value: string | number) => money(value, bill.currency);
  return (
    <>
      <div class="cards">
        <Card title="Machines bought" note={`${moment(bill.start, true)} to ${moment(bill.end)}`}>{cash(bill.total)}</Card>
        <Card title="Paid by dataflows" note={`idle machines: ${cash(bill.idle)}`}>{cash(paid / 10000)}</Card>
        <Card title="Alone they would have paid" note="each on a machine of its own">{cash(alone / 10000)}</Card>
        <Card title="Saved by sharing" note={alone ? share(1 - paid / alone) : ""}>{cash((alone - paid) / 10000)}</Card>
      </div>
      <p class={`banner ${adds ? "banner-good" : "banner-bad"}`} id="adds-up">
        {adds ? "●" : "▲"} {cash(paid / 10000)} paid + {cash(bill.idle)} idle = {cash((paid + units(bill.idle)) / 10000)};
        {adds ? " that is what the machines cost." : ` but the machines cost ${cash(bill.total)}.`}
      </p>
      <div class="filters">
        <label>
          Team
          <select value={param("team")} onChange={(event) => choose({ team: event.currentTarget.value })}>
            <option value="">all</option>
            {bill.owners.map((one) => <option value={one.owner}>{one.owner}</option>)}
          </select>
        </label>
        <a class="button" href={csv(bill)} download="headgate-bill.csv">Download CSV</a>
      </div>
      <SortedTable
        label="Bill by dataflow" rows={rows} id={(row) => row.dataflow} open={(row) => here({ open: row.dataflow })} chosen={param("open")}
        columns={[
          { key: "name", title: "Dataflow", value: (row) => row.dataflow, cell: (row) => <><a href={here({ open: row.dataflow })}>{row.dataflow}</a><Team owner={row.owner} /></> },
          { key: "hours", title: "Ran", unit: "hours", number: true, value: (row) => row.hours, cell: (row) => row.hours.toFixed(2) },
          { key: "tasks", title: "Tasks", number: true, value: (row) => row.tasks, cell: (row) => row.tasks },
          { key: "cost", title: "Paid", number: true, value: (row) => Number(row.cost), cell: (row) => <b>{cash(row.cost)}</b> },
          { key: "alone", title: "Alone", number: true, value: (row) => Number(row.alone), cell: (row) => cash(row.alone) },
          { key: "saved", title: "Saved", number: true, value: (row) => Number(row.saved), cell: (row) => cash(row.saved) },
          { key: "part", title: "Paid of alone", cell: (row) => <span class="pay"><span class="pay-alone" style={{ width: `${(100 * Number(row.alone)) / most}%` }} /><span class="pay-paid" style={{ width: `${(100 * Number(row.cost)) / most}%` }} /><span class="pay-label">{Number(row.alone) ? share(Number(row.cost) / Number(row.alone)) : ""}</span></span> },
        ]}
      />
      {param("open") && <Opened name={param("open")} />}
      <h2>By team</h2>
      <SortedTable
        label="Bill by team" rows={bill.owners} id={(row) => row.owner} sortParam="teams"
        columns={[
          { key: "owner", title: "Team", value: (row) => row.owner, cell: (row) => <Team owner={row.owner} /> },
          { key: "dataflows", title: "Dataflows", number: true, value: (row) => row.dataflows, cell: (row) => row.dataflows },
          { key: "cost", title: "Paid", number: true, value: (row) => Number(row.cost), cell: (row) => cash(row.cost) },
          { key: "alone", title: "Alone", number: true, value: (row) => Number(row.alone), cell: (row) => cash(row.alone) },
          { key: "saved", title: "Saved", number: true, value: (row) => Number(row.saved), cell: (row) => cash(row.saved) },
        ]}
      />
    </>
  );
}

function Opened({ name }: { name: string }) {
  const live = useLive<Lines>(`/bill/dataflows/${encodeURIComponent(name)}`, ONCE).value;
  return (
    <section class="panel" aria-label={`Bill of ${name}`}>
      <header><h2>{name}: what it pays for</h2><a class="button" href={here({ open: "" })} aria-label="Close the bill">✕</a></header>
      <Waiting live={live}>
        {(bill) => {
          const sum = bill.lines.reduce((all, line) => all + units(line.cost), 0);
          const shown = bill.lines.filter((line) => units(line.cost) > 0);
          const small = bill.lines.length - shown.length;
          const largest = Math.max(...bill.lines.map((line) => Number(line.cost)), 1e-9);
          return (
            <Scroll label={`Lines of ${name}`}>
              <table>
                <thead><tr><th scope="col">task</th><th scope="col">shared with</th><th scope="col" class="number">hours</th><th scope="col" class="number">its part</th><th scope="col">of the largest</th></tr></thead>
                <tbody>
                  {shown.map((line) => (
                    <tr>
                      <th scope="row">{line.task}</th>
                      <td>{line.sharers.length === 1 ? <span class="note">nobody</span> : `${line.sharers.length - 1}: ${line.sharers.filter((one) => one !== name).join(", ")}`}</td>
                      <td class="number">{line.hours.toFixed(3)}</td>
                      <td class="number">{money(line.cost, bill.currency)}</td>
                      <td><Bar value={Number(line.cost) / largest} label="" /></td>
                    </tr>
                  ))}
                  {small > 0 && <tr><th scope="row" class="note">{small} more</th><td class="note" colSpan={4}>of less than {money(0.0001, bill.currency)} each, while others came and went</td></tr>}
                </tbody>
                <tfoot><tr><th scope="row">together</th><td /><td /><td class="number" id="lines-total">{money(sum / 10000, bill.currency)}</td><td class="note">{sum === units(bill.total) ? "as on the bill" : `the bill has ${bill.total}`}</td></tr></tfoot>
              </table>
            </Scroll>
          );
        }}
      </Waiting>
    </section>
  );
}

function csv(bill: Bill): string {
  const rows = bill.dataflows.map((row) => [row.dataflow, row.owner, row.tasks, row.hours, row.cost, row.alone, row.saved, bill.currency].join(","));
  const text = ["dataflow,owner,tasks,hours,cost,alone,saved,currency", ...rows, `idle,,,,${bill.idle},,,${bill.currency}`].join("\n");
  return `data:text/csv;charset=utf-8,${encodeURIComponent(`${text}\n`)}`;
}
