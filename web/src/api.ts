/** Requests to the public API, and values that are kept current while a page shows them. */
import { signal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { components } from "./api-types";

export type Schemas = components["schemas"];
export type Problem = Schemas["ProblemDocument"];

export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

export const signedOut = signal(false);
export const connection = signal<"live" | "lost">("live");

export async function ask<T>(path: string, options: RequestInit = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/v1${path}`, { credentials: "same-origin", ...options });
  } catch (error) {
    if ((error as Error).name !== "AbortError") connection.value = "lost";
    throw error;
  }
  connection.value = "live";
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  if (response.status === 401) signedOut.value = true;
  throw new Refused(await problemOf(response));
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem;
  } catch {
    const detail = `The server answered ${response.status}.`;
    return { type: "", title: "", status: response.status, detail, condition: "", parameters: {}, errors: [] };
  }
}

/** A change; sent again with the same id it is made once. */
export function change<T>(method: string, path: string, body?: unknown, headers: HeadersInit = {}): Promise<T> {
  const id = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16)).join("-");
  return ask<T>(path, {
    method,
    headers: { "Content-Type": "application/json", "Idempotency-Key": id, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export interface Live<T> {
  data?: T;
  problem?: Problem;
  /** Of which address the data are. */
  path?: string;
}

/** What a route answers, asked again every some seconds while the page can be seen. */
export function useLive<T>(path: string | null, everyMs = 5000): Signal<Live<T>> {
  const state = useRef(signal<Live<T>>({})).current;
  useEffect(() => {
    if (path === null) return;
    let ended = false;
    let timer = 0;
    const controller = new AbortController();
    const look = async () => {
      try {
        const data = await ask<T>(path, { signal: controller.signal });
        if (!ended) state.value = { data, path };
      } catch (error) {
        if (!ended && error instanceof Refused) state.value = { problem: error.problem, path };
      }
      if (!ended && everyMs > 0) timer = setTimeout(again, everyMs) as unknown as number;
    };
    const again = () => (document.hidden ? (timer = setTimeout(again, 1000) as unknown as number) : void look());
    const now = () => {
      clearTimeout(timer);
      void look();
    };
    void look();
    addEventListener("headgate-changed", now);
    return () => {
      ended = true;
      clearTimeout(timer);
      controller.abort();
      removeEventListener("headgate-changed", now);
    };
  }, [path, everyMs]);
  return state;
}

/** Something has changed: what is shown is asked for again at once. */
export function changed(): void {
  dispatchEvent(new Event("headgate-changed"));
}
