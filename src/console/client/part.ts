import type { AnyComponent, VNode } from 'preact';
import { lazy } from 'preact-iso';
import type { NeedKind } from '../../domain/need.ts';
import type { JobHistory } from '../../http/job.ts';
import type { Query } from './lib/address.ts';
import type { JobDetail } from './lib/jobs.ts';
import type { IconName } from './ui/drawings.tsx';
import type { Fact } from './ui/page.tsx';

/**
 * Part of the console that a capability adds. `console/index.tsx` of its folder exports it as
 * `part`. `sluice:capabilities` has the parts of a build, in the order of the registry.
 */
export interface Part {
  readonly screens?: readonly Screen[];
  /** Links for needs of the overview. */
  readonly needs?: Partial<Record<NeedKind, NeedPlace>>;
  /** Kinds of loads that write their own file. */
  readonly jobTypes?: Readonly<Record<string, OwnJobType>>;
  readonly jobFacts?: (job: JobDetail) => readonly Fact[];
  /** Rare actions in the menu of a load or an export. */
  readonly JobMenu?: AnyComponent<JobProps>;
  /** Replaces the links to the profiles that a load wrote. `null` keeps them. */
  readonly jobLinks?: (job: JobDetail) => VNode | null;
  /** Panel for a user id without a profile, shown on request. */
  readonly UserPanel?: AnyComponent<{ readonly id: string }>;
  /** Only one capability has this. */
  readonly deletionOption?: DeletionOption;
  readonly loadOption?: LoadOption;
  /** Route that answers a file with a `RecordCheck`. */
  readonly checkPath?: string;
}

interface OwnJobType {
  readonly name: string;
  readonly outcome: (job: JobDetail) => string;
}

/** A choice in the deletion of a user. Also has an effect without a profile. */
interface DeletionOption {
  /** Field of the request that is set to true. */
  readonly field: string;
  readonly label: string;
  /** End of the button's text. */
  readonly verb: string;
}

export interface JobProps {
  readonly job: JobDetail;
  readonly history: JobHistory;
}

export const navGroups = ['', 'In', 'Out', 'Data', 'Service'] as const;

type Nav = readonly [title: string, icon: IconName, group: (typeof navGroups)[number]];

export interface Screen {
  /** Path below /console. `:name` is a parameter in `useRoute().params`. */
  readonly path: string;
  readonly component: AnyComponent;
  /** Place in the navigation. A screen without one belongs to the screen whose path it extends. */
  readonly nav: Nav | undefined;
}

/** Declares a screen by the export of a module that is loaded when the screen is first shown. */
export function screen<Name extends string>(
  path: string,
  load: () => Promise<Readonly<Record<Name, AnyComponent>>>,
  name: Name,
  ...nav: Nav | []
): Screen {
  // The router waits for ever for a module that fails to load, so the component throws.
  const orThrow = (error: unknown) => (): never => {
    throw error;
  };
  const component = lazy(() => load().then((module) => module[name], orThrow));
  return { path, component, nav: nav.length === 0 ? undefined : nav };
}

/** An option of loads, stored in the address. */
interface LoadOption {
  /** Fields with a control, by their names in the API. */
  readonly fields: readonly string[];
  /** Fields without a control. */
  readonly otherFields: readonly string[];
  readonly Control: AnyComponent<{ readonly query: Query }>;
  /** Returns true if the option decides about stored values, so that the load needs a plan. */
  readonly decides: (query: Query) => boolean;
}

/** Records that a load of a file would refuse. */
export interface RecordCheck {
  /** Reason why the file cannot be read. `null` if it can. */
  readonly problem: { readonly message: string } | null;
  /** Number of records, and the first of them. Rows start at 1. */
  readonly rejects: {
    readonly count: number;
    readonly items: readonly { readonly row: number; readonly message: string }[];
  };
}

/** Returns a button's text and address. `subject` is the only subject of the need, or `null`. */
export type NeedPlace = (subject: string | null) => readonly [button: string, href: string];
