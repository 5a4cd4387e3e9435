import type { AnyComponent, VNode } from 'preact';
import { lazy } from 'preact-iso';
import type { NeedKind } from '../../domain/need.ts';
import type { Query } from './lib/address.ts';
import type { JobDetail, LoadJob } from './lib/jobs.ts';
import type { IconName } from './ui/drawings.tsx';
import type { Fact } from './ui/page.tsx';

/**
 * Part of the console that a capability adds and exports as `part` from its `console/index.tsx`.
 * The module `sluice:capabilities` lists the parts of a build, in the order of the registry.
 */
export interface Part {
  readonly screens?: readonly Screen[];
  /** Links that the overview shows for things that need attention. */
  readonly needs?: Partial<Record<NeedKind, NeedPlace>>;
  /** Kinds of loads whose file this capability writes itself. */
  readonly jobTypes?: Readonly<Record<string, OwnJobType>>;
  readonly jobFacts?: (job: LoadJob) => readonly Fact[];
  /** Rarely used actions in the menu of a load or an export. */
  readonly JobMenu?: AnyComponent<JobProps>;
  /** Replaces the links to the profiles that a load wrote. `null` keeps the default links. */
  readonly jobLinks?: (job: LoadJob) => VNode | null;
  /** Panel about a user id that has no profile. The console shows the panel on request. */
  readonly UserPanel?: AnyComponent<{ readonly id: string }>;
  /** At most one capability may have a deletion option. */
  readonly deletionOption?: DeletionOption;
  readonly loadOption?: LoadOption;
  readonly exportFilter?: ExportFilter;
  readonly signIn?: SignInPart;
  /** Route that checks a file and returns a `RecordCheck`. */
  readonly checkPath?: string;
}

/** Another way to sign in. */
interface SignInPart {
  /** Name by which the service identifies this way to sign in. */
  readonly holder: string;
  /** Shown above the form for signing in with a key. */
  readonly SignIn: AnyComponent;
  /** Ends the session. Returns the address to open afterwards, or `null`. */
  readonly signOut: () => Promise<string | null>;
}

interface OwnJobType {
  readonly name: string;
  readonly outcome: (job: LoadJob) => string;
}

/** An option in the dialog for deleting a user. It also takes effect if the id has no profile. */
interface DeletionOption {
  /** Field of the request that is set to true if the user chooses the option. */
  readonly field: string;
  readonly label: string;
  /** Text that the option adds to the end of the button's label. */
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
   * Position in the navigation. If undefined, the screen belongs to the screen whose path is a
   * prefix of this screen's path.
   */
  readonly nav: Nav | undefined;
}

/**
 * Declares a screen as an export of a module. The module is loaded when the screen is first shown.
 */
export function screen<Name extends string>(
  path: string,
  load: () => Promise<Readonly<Record<Name, AnyComponent>>>,
  name: Name,
  ...nav: Nav | []
): Screen {
  // If the import were rejected, the router would wait forever. Therefore, a component that throws
  // replaces it.
  const orThrow = (error: unknown) => (): never => {
    throw error;
  };
  const component = lazy(() => load().then((module) => module[name], orThrow));
  return { path, component, nav: nav.length === 0 ? undefined : nav };
}

/** An option of loads, which is stored in the page's address. */
interface LoadOption {
  /** Fields that have a control, by their names in the API. */
  readonly fields: readonly string[];
  readonly otherFields: readonly string[];
  readonly Control: AnyComponent<{ readonly query: Query }>;
  /**
   * Returns true if the option affects stored values. The load is then planned before it starts.
   */
  readonly decides: (query: Query) => boolean;
}

/** An export option that selects users, as a filter in the export form. */
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

/** Result of a check: the records that a load of the file would refuse. */
export interface RecordCheck {
  /** Reason why the file cannot be read, or `null`. */
  readonly problem: { readonly message: string } | null;
  /** Number of refused records, and the first few of them. Rows are counted from 1. */
  readonly rejects: {
    readonly count: number;
    readonly items: readonly { readonly row: number; readonly message: string }[];
  };
}

/**
 * Returns the label and the address of a button. If the need concerns one thing only, `subject`
 * names it. Otherwise, `subject` is `null`.
 */
export type NeedPlace = (subject: string | null) => readonly [button: string, href: string];
