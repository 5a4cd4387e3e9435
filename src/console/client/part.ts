import type { AnyComponent, VNode } from 'preact';
import { lazy } from 'preact-iso';
import type { NeedKind } from '../../domain/need.ts';
import type { JobHistory } from '../../http/job.ts';
import type { Query } from './lib/address.ts';
import type { JobDetail } from './lib/jobs.ts';
import type { IconName } from './ui/drawings.tsx';
import type { Fact } from './ui/page.tsx';

/**
 * What a capability adds to the console. `console/index.tsx` of its folder exports it as `part`. The parts of a build are in
 * `sluice:capabilities`, in the order of the registry. A screen of the core asks them for what it shows of them.
 */
export interface Part {
  readonly screens?: readonly Screen[];
  /** What to do about needs of the overview. */
  readonly needs?: Partial<Record<NeedKind, NeedPlace>>;
  /** Kinds of loads that write their own file. They have no menu. */
  readonly jobTypes?: Readonly<Record<string, OwnJobType>>;
  /** Facts of a load. */
  readonly jobFacts?: (job: JobDetail) => readonly Fact[];
  /** Rare actions of a load or an export, in its menu. */
  readonly JobMenu?: AnyComponent<JobProps>;
  /** Stands in place of the links to what a load wrote; `null`: they stay. */
  readonly jobLinks?: (job: JobDetail) => VNode | null;
  /**
   * Shown of a user id without a profile, once somebody looks for more
   * (`src/profiles/console/profile.tsx`).
   */
  readonly UserPanel?: AnyComponent<{ readonly id: string }>;
  /** At most one capability has this. */
  readonly deletionOption?: DeletionOption;
  readonly loadOption?: LoadOption;
  /** A route that answers a file with `RecordCheck`. */
  readonly checkPath?: string;
}

interface OwnJobType {
  readonly name: string;
  /** Returns what a completed job has done. */
  readonly outcome: (job: JobDetail) => string;
}

/** A choice when a user is deleted. It has an effect on an id of which nothing is stored, too. */
interface DeletionOption {
  /** The field of the request, which is then true. */
  readonly field: string;
  readonly label: string;
  /** Ends the text of the button. */
  readonly verb: string;
}

export interface JobProps {
  readonly job: JobDetail;
  readonly history: JobHistory;
}

export const navGroups = ['', 'In', 'Out', 'Data', 'Service'] as const;

type Nav = readonly [title: string, icon: IconName, group: (typeof navGroups)[number]];

export interface Screen {
  /** Below /console; `:name` is a parameter, which `useRoute().params` has. */
  readonly path: string;
  readonly component: AnyComponent;
  /** Its place in the navigation. A screen without it belongs to the one whose path begins its own. */
  readonly nav: Nav | undefined;
}

/** Declares a screen by the name that its module exports. The module is loaded when the screen is first shown. */
export function screen<Name extends string>(
  path: string,
  load: () => Promise<Readonly<Record<Name, AnyComponent>>>,
  name: Name,
  ...nav: Nav | []
): Screen {
  // The router would wait for ever for code that cannot be loaded.
  const orThrow = (error: unknown) => (): never => {
    throw error;
  };
  const component = lazy(() => load().then((module) => module[name], orThrow));
  return { path, component, nav: nav.length === 0 ? undefined : nav };
}

/** An option of loads, which stands in the address. */
interface LoadOption {
  /** Its fields with a control, and those without, by the names of the API. */
  readonly fields: readonly string[];
  readonly otherFields: readonly string[];
  readonly Control: AnyComponent<{ readonly query: Query }>;
  /** Tells whether it decides about stored values. Then `existing` is not offered, and the load is planned first. */
  readonly decides: (query: Query) => boolean;
}

/** What a load of a file would refuse. */
export interface RecordCheck {
  /** Why the file cannot be read at all. */
  readonly problem: { readonly message: string } | null;
  /** How many records, and the first of them; rows are counted from 1. */
  readonly rejects: {
    readonly count: number;
    readonly items: readonly { readonly row: number; readonly message: string }[];
  };
}

/** The text of a button and its address. `subject` is the one thing that a need is about, if there is only one. */
export type NeedPlace = (subject: string | null) => readonly [button: string, href: string];
