/** What the tools on instructions and experiments give, as far as the pages use it. */

export interface TextInfo {
  tag: string;
  kind: "bundle" | "element";
  tier: number | null;
  category: string | null;
  version: string;
  status: "active" | "deprecated" | "draft";
  tokens: number;
  dependencies: string[];
  use_cases: string[];
  /** Whether it is the tenant's own, over the platform's. */
  own: boolean;
}

export interface InstructionList {
  release: string;
  texts: TextInfo[];
}

export interface InstructionShown {
  release: string;
  info: TextInfo;
  content: string;
}

export interface TextChange {
  tag: string;
  change: "added" | "changed" | "removed";
  before: string | null;
  after: string | null;
  diff: string;
}

export interface Publication {
  release: string;
  number: number;
  changes: TextChange[];
}

export interface InstructionDiff {
  before: number;
  after: number;
  changes: TextChange[];
}

export interface ReleaseInfo {
  number: number;
  active: boolean;
  texts: number;
  note: string;
  by: string;
  created_at: string;
}

export interface ReleaseList {
  release: string;
  releases: ReleaseInfo[];
}

export interface ArmInfo {
  name: string;
  weight: number;
  tags: string[];
  users: number;
}

export interface Experiment {
  name: string;
  status: "running" | "stopped";
  arms: ArmInfo[];
  started_at: string;
  stopped_at: string | null;
}

export interface Interval {
  estimate: number;
  low: number;
  high: number;
  method: string;
}

export interface ArmResult {
  arm: string;
  exposed: number;
  users: number;
  mean: Interval | null;
  against_first: Interval | null;
}

export interface ExperimentReport {
  experiment: Experiment;
  confidence: number;
  metrics: { metric: string; arms: ArmResult[] }[];
}
