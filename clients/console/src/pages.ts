/** All pages: where they are, where the navigation names them, and what draws them. Each is loaded when it is opened. */

import type { LucideIcon } from "lucide-preact";
import { Activity, Brain, FileText, Home, Landmark, ListChecks, MessageSquare, Settings, Waypoints } from "lucide-preact";
import { lazy } from "preact-iso";
import type { ComponentType } from "preact";

import type { Me } from "./session";
import type { Key } from "./text";

export interface Area {
  /** Path below `/console`; all paths below it are the area's too. */
  path: string;
  title: Key;
  icon: LucideIcon;
  page: ComponentType;
  /** Whether somebody may open it; everybody by default. */
  open?: (me: Me) => boolean;
}

export const BASE = "/console";

export const AREAS: Area[] = [
  { path: "", title: "shell.home", icon: Home, page: lazy(() => import("./pages/start")) },
  { path: "/chat", title: "shell.chat", icon: MessageSquare, page: lazy(() => import("./pages/chat")) },
  { path: "/memory", title: "shell.memory", icon: Brain, page: lazy(() => import("./pages/memory")) },
  { path: "/graph", title: "shell.graph", icon: Waypoints, page: lazy(() => import("./pages/graph")) },
  { path: "/constitution", title: "shell.constitution", icon: Landmark, page: lazy(() => import("./pages/constitution")) },
  { path: "/work", title: "shell.work", icon: ListChecks, page: lazy(() => import("./pages/work")) },
  { path: "/traces", title: "shell.traces", icon: Activity, page: lazy(() => import("./pages/traces")) },
  { path: "/instructions", title: "shell.instructions", icon: FileText, page: lazy(() => import("./pages/instructions")) },
  { path: "/settings", title: "shell.settings", icon: Settings, page: lazy(() => import("./pages/settings")) },
];
