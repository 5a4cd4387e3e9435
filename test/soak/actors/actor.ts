import type { Client } from '../client.ts';
import type { Journal } from '../journal.ts';
import type { Random } from '../random.ts';
import type { Site, Sql, Tenant } from '../site/site.ts';

/**
 * Somebody who uses the service, in a key space of its own, and remembers what must have come of it: what it was
 * answered is certain, what it was not answered may or may not have happened.
 */
export interface Actor {
  readonly name: string;
  /** Before anybody works, and before anything is broken. */
  prepare?(): Promise<void>;
  /** Works until there is to be no new work, and then until what was begun has its answer. */
  run(): Promise<void>;
  /** For the progress line and the report. */
  figures(): Readonly<Record<string, number>>;
  /** Tells in sentences what is not as it must be. Asked when everything is quiet. */
  check(sql: Sql): Promise<readonly string[]>;
}

/** The surroundings that an actor is given. */
export interface Stage {
  readonly site: Site;
  readonly journal: Journal;
  /** The time that is left until there is to be no new work. */
  readonly minutes: number;
  /** Given when there is to be no new work. */
  readonly closing: AbortSignal;
  random(name: string): Random;
  client(tenant: Tenant): Client;
  /** By number. */
  tenant(number: number): Tenant;
}

/** The first of many, for a sentence. */
export function some(list: readonly string[], count = 5): string {
  const shown = list.slice(0, count).join(', ');
  return list.length > count ? `${shown} and ${list.length - count} more` : shown;
}
