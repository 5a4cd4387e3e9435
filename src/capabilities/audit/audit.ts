/*
 * The audit log has an entry for each act that is recorded through `src/postgres/acts.ts`. An entry
 * is committed with its act, and is kept for AUDIT_DAYS. Entries do not contain values of records.
 */
import { isIP } from 'node:net';
import type { Logger } from 'pino';
import type { Capability } from '../../capability.ts';
import type { Act, Actor, RefusedAttempt } from '../../domain/act.ts';
import { networkOf } from '../../http/plugins/limits.ts';
import type { ActListener, ActSystem } from '../../postgres/acts.ts';
import type { Database } from '../../postgres/database.ts';
import { insertEntries, type NewEntry, removeExpired } from './store.ts';

export const audit: Capability = {
  name: 'audit',
  acts: (system) => (system.config.auditDays === 0 ? null : openLog(system)),
  async maintain({ db, config: { auditDays } }) {
    return { audit_entries: auditDays === 0 ? 0 : await removeExpired(db, auditDays) };
  },
  routes: async () => ({ operations: (await import('./http.ts')).auditRoutes }),
  commands: { audit: async () => (await import('./cli.ts')).audit },
};

const FLUSH_MS = 2_000;
/**
 * Maximum number of networks that a process counts separately in an hour. It counts further
 * networks together. Without a limit, anyone could fill the disk.
 */
export const MAX_COUNTED_NETWORKS = 250;

const MAX_TEXT_CHARS = 200;
const MAX_DETAILS = 10;
const MAX_DETAIL_CHARS = 150;

export function openLog({ db, log }: ActSystem): ActListener {
  const refusals = new Refusals(db, log);
  return {
    acted: (transaction, actor, act) => insertEntries(transaction, [entryOf(actor, act)]),
    refused: (attempt) => refusals.add(attempt),
    close: () => refusals.flush(),
  };
}

function entryOf(actor: Actor, act: Act): NewEntry {
  const details = Object.entries(act.details ?? {})
    .filter(([, value]) => value !== null)
    .slice(0, MAX_DETAILS)
    .map(([name, value]) => [name, typeof value === 'string' ? bounded(value, MAX_DETAIL_CHARS) : value]);
  return {
    environmentId: act.environmentId,
    action: act.action,
    outcome: 'done',
    actorKind: actor.kind,
    actorName: boundedOrNull(actor.name),
    sessionId: boundedOrNull(actor.sessionId),
    address: boundedOrNull(actor.address),
    thing: boundedOrNull(act.thing),
    details: Object.fromEntries(details),
    isCounted: act.isFrequent === true,
    count: 1,
  };
}

const boundedOrNull = (text: string | null | undefined): string | null =>
  text == null ? null : bounded(text, MAX_TEXT_CHARS);

/** Characters that would end a line, or hide or reorder the text beside them. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/gu;

function bounded(text: string, maxChars: number): string {
  const visible = text
    .slice(0, maxChars)
    .replace(hidden, (each) => `U+${each.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`);
  return visible.length <= maxChars && text.length <= maxChars
    ? visible
    : `${visible.slice(0, maxChars - 1).toWellFormed()}…`;
}

/**
 * Every few seconds, one statement adds the counts to the entries of the current hour. If the
 * process is killed, its last counts are lost.
 */
class Refusals {
  readonly #db: Database;
  readonly #log: Logger;
  readonly #networks = new Set<string>();
  #hour = 0;
  #counts = new Map<string, NewEntry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Database, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  add({ action, reason, address }: RefusedAttempt): void {
    const network = this.#countedNetwork(address);
    const key = `${action} ${reason} ${network}`;
    const entry = this.#counts.get(key);
    this.#counts.set(key, {
      environmentId: null,
      action,
      outcome: 'refused',
      actorKind: 'anonymous',
      actorName: null,
      sessionId: null,
      address: network,
      thing: null,
      details: { reason },
      isCounted: true,
      count: (entry?.count ?? 0) + 1,
    });
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Returns the network of the address, or `null` if the network is not counted separately. */
  #countedNetwork(address: string): string | null {
    // Behind a proxy, the address comes from a header, which may contain any text.
    if (isIP(address) === 0) return null;
    const hour = Math.floor(Date.now() / 3_600_000);
    if (hour !== this.#hour) this.#networks.clear();
    this.#hour = hour;
    const network = networkOf(address);
    if (!this.#networks.has(network) && this.#networks.size >= MAX_COUNTED_NETWORKS) return null;
    this.#networks.add(network);
    return network;
  }

  /** Writes the counts, but never throws. Counts that cannot be written are lost. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const entries = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
    this.#counts = new Map();
    if (entries.length === 0) return;
    try {
      await insertEntries(this.#db, entries);
    } catch (error) {
      this.#log.warn({ err: error }, 'refused credentials of the last seconds are missing in the audit log');
    }
  }
}
