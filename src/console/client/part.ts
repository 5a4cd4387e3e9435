import type { AnyComponent } from 'preact';
import { lazy } from 'preact-iso';
import type { NeedKind } from '../../domain/need.ts';
import type { JobHistory } from '../../http/job.ts';
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
  /** Facts of a load. */
  readonly jobFacts?: (job: JobDetail) => readonly Fact[];
  /** Rare actions of a load or an export, in its menu. */
  readonly JobMenu?: AnyComponent<JobProps>;
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

/** Declares a screen, whose code is loaded when it is first shown. */
export function screen(path: string, load: () => Promise<AnyComponent>, ...nav: Nav | []): Screen {
  // The router would wait for ever for code that cannot be loaded.
  const orThrow = (error: unknown) => (): never => {
    throw error;
  };
  return { path, component: lazy(() => load().catch(orThrow)), nav: nav.length === 0 ? undefined : nav };
}

/** The text of a button and its address. `subject` is the one thing that a need is about, if there is only one. */
export type NeedPlace = (subject: string | null) => readonly [button: string, href: string];
