/** Reading and doing from components: what is loading, what failed, and how to try again. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { Problem } from "./client";

export interface Read<T> {
  /** The last data; kept while newer ones are read. */
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  reload: () => void;
  /** Shows other data at once, such as what an act has just changed. */
  set: (data: T) => void;
}

function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "internal", String(error));
}

/** Reads when the component appears and whenever one of `on` changes; an older answer never replaces a newer one.
 *
 * @param every seconds between further reads while the page is seen; none by default.
 */
export function useRead<T>(read: (signal: AbortSignal) => Promise<T>, on: unknown[], every?: number): Read<T> {
  const [state, setState] = useState<{ data?: T; problem?: Problem; loading: boolean }>({ loading: true });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  useEffect(() => {
    const ended = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    read(ended.signal).then(
      (data) => !ended.signal.aborted && setState({ data, loading: false }),
      (error) => !ended.signal.aborted && setState((before) => ({ ...before, problem: asProblem(error), loading: false })),
    );
    return () => ended.abort();
  }, [...on, round]);
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), every * 1000);
    return () => clearInterval(timer);
  }, [every]);
  return { ...state, data: state.data, problem: state.problem, reload, set: (data) => setState({ data, loading: false }) };
}

export interface Pages<T> extends Omit<Read<T[]>, "set"> {
  /** Reads the next page behind those that are there; absent at the end. */
  more: (() => void) | undefined;
}

/** Reads a list page by page.
 *
 * @param read gives a page and the cursor of the next one.
 */
export function usePages<T>(
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<{ items: T[]; next?: string | null }>,
  on: unknown[],
): Pages<T> {
  const first = useRead((signal) => read(undefined, signal), on);
  const [rest, setRest] = useState<{ items: T[]; next?: string | null; of: unknown }>({ items: [], of: undefined });
  const busy = useRef(false);
  const [problem, setProblem] = useState<Problem>();
  const current = rest.of === first.data ? rest : { items: [], next: first.data?.next };
  const more = async () => {
    if (busy.current || !current.next) return;
    busy.current = true;
    try {
      const page = await read(current.next, new AbortController().signal);
      setRest({ items: [...current.items, ...page.items], next: page.next, of: first.data });
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      busy.current = false;
    }
  };
  return {
    data: first.data && [...first.data.items, ...current.items],
    problem: first.problem ?? problem,
    loading: first.loading,
    reload: first.reload,
    more: current.next ? () => void more() : undefined,
  };
}

/** An act of the user: runs one at a time, and tells what failed. */
export function useAct<A extends unknown[], T>(act: (...given: A) => Promise<T>) {
  const [problem, setProblem] = useState<Problem>();
  const [running, setRunning] = useState(false);
  const run = async (...given: A): Promise<T | undefined> => {
    if (running) return undefined;
    setRunning(true);
    setProblem(undefined);
    try {
      return await act(...given);
    } catch (error) {
      setProblem(asProblem(error));
      return undefined;
    } finally {
      setRunning(false);
    }
  };
  return { run, running, problem, clear: () => setProblem(undefined) };
}
