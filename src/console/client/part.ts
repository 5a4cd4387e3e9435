import type { AnyComponent, VNode } from 'preact';
import { lazy } from 'preact-iso';
import type { NeedKind } from '../../domain/need.ts';
import type { Query } from './lib/address.ts';
import type { JobDetail, LoadJob } from './lib/jobs.ts';
import type { IconName } from './ui/drawings.tsx';
import type { Fact } from './ui/page.tsx';

/**
 * Part of the console that a capability exports as `part` from its `console/index.tsx`.
 * `sluice:capabilities` lists the parts in the order of the registry.
 */
export interface Part {
  readonly screens?: readonly Screen[];
  /** Links of the overview to things that need attention. */
  readonly needs?: Partial<Record<NeedKind, NeedPlace>>;
  /** Kinds of loads whose file this capability writes itself. */
  readonly jobTypes?: Readonly<Record<string, OwnJobType>>;
  readonly jobFacts?: (job: LoadJob) => readonly Fact[];
  /** Rarely used actions in the menu of a load or an export. */
  readonly JobMenu?: AnyComponent<JobProps>;
  /** Replaces the links to the profiles that a load wrote. `null` keeps the links. */
  readonly jobLinks?: (job: LoadJob) => VNode | null;
  /** Panel about a user id that has no profile, shown on request. */
  readonly UserPanel?: AnyComponent<{ readonly id: string }>;
  /** At most one capability may have a deletion option. */
  readonly deletionOption?: DeletionOption;
  readonly loadOption?: LoadOption;
  readonly exportFilter?: ExportFilter;
  readonly signIn?: SignInPart;
  /** Route that checks a file and returns a `RecordCheck`. */
  readonly checkPath?: string;
}

interface SignInPart {
  /** Name by which the service identifies this way to sign in. */
  readonly holder: string;
  /** Element above the form in which the user enters a key. */
  readonly SignIn: AnyComponent;
  /** Signs the user out. Returns the address to open after that, or `null`. */
  readonly signOut: () => Promise<string | null>;
}

interface OwnJobType {
  readonly name: string;
  readonly outcome: (job: LoadJob) => string;
}

/** Option for the deletion of a user. The option also takes effect if the id has no profile. */
interface DeletionOption {
  /** Field of the request that the option sets to true. */
  readonly field: string;
  readonly label: string;
  /** Text at the end of the button's label. */
  readonly verb: string;
}

export interface JobProps {
  readonly job: JobDetail;
}

export const navGroups = ['', 'In', 'Out', 'Data', 'Service'] as const;

type Nav = readonly [title: string, icon: IconName, group: (typeof navGroups)[number]];

export interface Screen {
  /** Path below /console. `:name` is a parameter in `useRoute().params`. */
  readonly path: string;
  readonly component: AnyComponent;
  /**
   * Link to the screen in the navigation. Without a link, the screen belongs to another screen,
   * whose path is a prefix of this screen's path.
   */
  readonly nav: Nav | undefined;
}

/** Declares a screen, whose module is loaded when the screen is first shown. */
export function screen<Name extends string>(
  path: string,
  load: () => Promise<Readonly<Record<Name, AnyComponent>>>,
  name: Name,
  ...nav: Nav | []
): Screen {
  // The router would wait forever for a rejected import.
  const orThrow = (error: unknown) => (): never => {
    throw error;
  };
  const component = lazy(() => load().then((module) => module[name], orThrow));
  return { path, component, nav: nav.length === 0 ? undefined : nav };
}

/** Option of loads, stored in the page's address. */
interface LoadOption {
  /** Fields that have a control, by their names in the API. */
  readonly fields: readonly string[];
  readonly otherFields: readonly string[];
  readonly Control: AnyComponent<{ readonly query: Query }>;
  /**
   * True if the option affects stored values, so that the load must be planned before it starts.
   */
  readonly decides: (query: Query) => boolean;
}

/** A control in the export form with which users are selected. */
export interface ExportFilter {
  readonly label: string;
  /** Field in the request and in the page's address. */
  readonly field: string;
  readonly Control: AnyComponent<ExportFilterProps>;
}

export interface ExportFilterProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The records that a load of the file would refuse. */
export interface RecordCheck {
  /** The reason why the file cannot be read, or `null`. */
  readonly problem: { readonly message: string } | null;
  /** `items` are the first few refused records. Rows are counted from 1. */
  readonly rejects: {
    readonly count: number;
    readonly items: readonly { readonly row: number; readonly message: string }[];
  };
}

/** `subject` names the one thing that the need concerns, or is `null`. */
export type NeedPlace = (subject: string | null) => readonly [button: string, href: string];
