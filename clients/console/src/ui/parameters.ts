/** What a page shows, kept in its address: filters, order, what is open. A link shows the same to somebody else. */

import { useLocation } from "preact-iso";

export type Parameters = Record<string, string | undefined>;

/** The parameters of the page's address, and a function that changes some of them; an empty one is taken out. */
export function useParameters(): [Parameters, (changes: Parameters, replace?: boolean) => void] {
  const { path, query, route } = useLocation();
  const change = (changes: Parameters, replace = true) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    const text = next.toString();
    route(text ? `${path}?${text}` : path, replace);
  };
  return [query as Parameters, change];
}
