/** The graph as a picture, laid out by the server, and the same as a table. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Schemas } from "../api";
import { count, rate, share, short, span } from "../format";
import { go, here } from "../router";
import { colour } from "../teams";
import { Teams } from "./parts";
import { SortedTable } from "./table";

type Graph = Schemas["RunningGraph"];
type Node = Schemas["GraphNode"];
type Rates = Schemas["GraphRates"];
type Flow = Schemas["NodeRates"];

interface Props {
  graph: Graph;
  rates?: Rates;
  chosen?: string;
}

export function Drawing({ graph, rates, chosen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const zoom = useSignal(0);
  useEffect(() => {
    zoom.value = Math.max(0.35, Math.min(1, (box.current!.clientWidth - 4) / graph.width));
  }, [graph.width, chosen === undefined]);
  const flows = new Map(rates?.nodes.map((one) => [one.id, one]));
  const most = Math.max(1, ...(rates?.nodes ?? []).map((one) => one.out_per_s ?? 0));
  const scale = zoom.value || 1;
  const opened = (node: Node) => (node.role === "group" ? deeper(node) : here({ node: node.name }));
  return (
    <div class="picture">
      <div class="zoom">
        <button type="button" aria-label="Smaller" onClick={() => (zoom.value = Math.max(0.2, scale / 1.25))}>−</button>
        <button type="button" aria-label="Larger" onClick={() => (zoom.value = Math.min(2, scale * 1.25))}>+</button>
      </div>
      <div class="scroll drawing" ref={box} role="region" aria-label="Graph" tabIndex={0}>
        <svg
          viewBox={`0 0 ${graph.width} ${graph.height}`} width={graph.width * scale} height={graph.height * scale}
          role="group" aria-label={`Graph of ${graph.nodes.length} nodes; the table below has the same`}
        >
          <defs>
            <pattern id="blocked" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="2" height="6" class="hatch" />
            </pattern>
            <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0 0L8 4L0 8z" class="tip" />
            </marker>
          </defs>
          {graph.edges.map((edge) => {
            const flow = flows.get(edge.source)?.out_per_s;
            const width = flow == null ? 1.2 : 1 + 5 * Math.sqrt(flow / most);
            return <path key={`${edge.source} ${edge.target}`} class={`edge${edge.feedback ? " edge-back" : ""}${flow === 0 ? " edge-idle" : ""}`} d={curve(edge)} stroke-width={width} marker-end="url(#tip)" />;
          })}
          {graph.nodes.map((node) => (
            <NodeBox key={node.id} node={node} graph={graph} flow={flows.get(node.id)} slow={rates?.slow === node.id} chosen={chosen === node.id} address={opened(node)} />
          ))}
        </svg>
      </div>
    </div>
  );
}

/** A group opens into what it is made of. */
function deeper(node: Node): string {
  const flows = node.users.map((user) => user.dataflow);
  return here(node.used_by <= 12 ? { select: flows.join(","), level: "tasks", node: "" } : { select: node.owners.map((one) => `team:${one}`).join(","), level: "dataflows", node: "" });
}

function curve(edge: Schemas["GraphEdge"]): string {
  const [start, ...rest] = edge.points as [number, number][];
  let [x, y] = start!;
  let path = `M${x} ${y}`;
  if (edge.feedback) {
    const [x1, y1] = rest.at(-1)!;
    const low = Math.max(y, y1) + 50;
    return `${path} C${x + 60} ${low} ${x1 - 60} ${low} ${x1} ${y1}`;
  }
  for (const [nextX, nextY] of rest) {
    const bend = Math.min(40, (nextX - x) / 2);
    path += nextY === y ? ` L${nextX} ${nextY}` : ` C${x + bend} ${y} ${nextX - bend} ${nextY} ${nextX} ${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

/** On SVG elements, only the attribute of this spelling counts. */
const FOCUSABLE = { tabindex: "0" } as object;

interface BoxProps {
  node: Node;
  graph: Graph;
  flow?: Flow;
  slow: boolean;
  chosen: boolean;
  address: string;
}

function NodeBox({ node, graph, flow, slow, chosen, address }: BoxProps) {
  const { node_width: width, node_height: height } = graph;
  const stripe = height / Math.max(node.owners.length, 1);
  const open = () => go(address);
  const marks = [
    node.used_by > 1 && `×${node.used_by}`,
    node.alternates > 1 && `1 of ${node.alternates} ways`,
    node.stateful && "state",
    node.held && "held",
    node.paused && "paused",
  ].filter(Boolean);
  const number = flow?.in_per_s ?? flow?.out_per_s;
  return (
    <g
      class={`node node-${node.role}${node.paused ? " node-paused" : ""}${slow ? " node-slow" : ""}${chosen ? " node-chosen" : ""}`}
      transform={`translate(${node.x} ${node.y})`} role="button" {...FOCUSABLE} aria-label={described(node, flow, slow)} data-node={node.name}
      onClick={open}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          open();
        }
      }}
    >
      <rect class="box" width={width} height={height} rx="5" />
      {node.owners.slice(0, 8).map((owner, index) => (
        <rect key={owner} y={index * stripe} width="6" height={stripe} style={{ fill: colour(owner) }} />
      ))}
      {(flow?.waiting ?? 0) > 0 && <rect x="6" width={width - 6} height="5" fill="url(#blocked)" />}
      <text x="14" y="19" class="label">{cut(node.label, 21)}</text>
      <text x="14" y="34" class="detail">{cut(node.alternates > 1 ? node.alternate : node.detail, 24)}</text>
      <text x="14" y="49" class="marks">{marks.join(" · ")}</text>
      <text x={width - 8} y="19" class="rate" text-anchor="end">{number == null ? "" : `${short(number)}/s`}</text>
      <text x={width - 8} y="49" class="detail" text-anchor="end">{flow?.share ? share(flow.share) : ""}</text>
    </g>
  );
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function described(node: Node, flow: Flow | undefined, slow: boolean): string {
  const parts = [node.name, node.detail, `used by ${node.users.map((user) => user.dataflow).join(", ")}`];
  if (flow?.in_per_s != null) parts.push(`${rate(flow.in_per_s)} rows a second`);
  if (slow) parts.push("the bottleneck");
  if (node.paused) parts.push("paused");
  return parts.join("; ");
}

export function NodeTable({ graph, rates, chosen }: Props) {
  const flows = new Map(rates?.nodes.map((one) => [one.id, one]));
  const flow = (node: Node) => flows.get(node.id);
  return (
    <details class="twin" open={graph.nodes.length <= 40}>
      <summary>The graph as a table</summary>
      <SortedTable<Node>
        label="Nodes of the graph" rows={graph.nodes} id={(node) => node.id} chosen={chosen} sortParam="order"
        open={(node) => (node.role === "group" ? deeper(node) : here({ node: node.name }))}
        columns={[
          { key: "name", title: graph.level === "tasks" ? "Task" : "Node", value: (node) => node.name, cell: (node) => <a href={node.role === "group" ? deeper(node) : here({ node: node.name })}>{node.name}</a> },
          { key: "type", title: "Type", value: (node) => node.detail, cell: (node) => (node.alternates > 1 ? `${node.detail}, 1 of ${node.alternates} ways` : node.detail) },
          { key: "teams", title: "Teams", cell: (node) => <Teams owners={node.owners} /> },
          { key: "users", title: "Used by", number: true, value: (node) => node.used_by, cell: (node) => count(node.used_by) },
          { key: "in", title: "In", unit: "rows/s", number: true, value: (node) => flow(node)?.in_per_s, cell: (node) => rate(flow(node)?.in_per_s) },
          { key: "out", title: "Out", unit: "rows/s", number: true, value: (node) => flow(node)?.out_per_s, cell: (node) => rate(flow(node)?.out_per_s) },
          { key: "own", title: "Own delay", number: true, value: (node) => flow(node)?.own_delay_s, cell: (node) => span(flow(node)?.own_delay_s), help: "What its fragment adds: waiting, and a batch" },
          { key: "delay", title: "Since the source", number: true, value: (node) => flow(node)?.delay_s, cell: (node) => span(flow(node)?.delay_s) },
          { key: "waiting", title: "Waiting", unit: "rows", number: true, value: (node) => flow(node)?.waiting, cell: (node) => short(flow(node)?.waiting) },
          { key: "cpu", title: "CPU", unit: "of all tasks", number: true, value: (node) => flow(node)?.share, cell: (node) => share(flow(node)?.share) },
        ]}
      />
    </details>
  );
}
