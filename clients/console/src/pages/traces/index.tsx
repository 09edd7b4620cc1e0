import { useLocation } from "preact-iso";

import { BASE } from "../../pages";
import { TurnList } from "./list";
import { TurnPage } from "./turn";

export default function Traces() {
  const [id] = useLocation().path.slice(`${BASE}/traces/`.length).split("/");
  return id ? <TurnPage key={id} id={decodeURIComponent(id)} /> : <TurnList />;
}
