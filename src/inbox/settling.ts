import { type FileIdentity, type InboxFolder, isSameFile } from '../domain/inbox.ts';
import type { Seen } from './look.ts';

/** A file, and the folder of the environment that it lies in. */
export interface SeenFile extends Seen {
  readonly folder: InboxFolder;
}

/** When a look was made. */
export interface Moment {
  /** From any origin, never set back. */
  readonly monotonicMs: number;
  /** Since 1970. */
  readonly wallMs: number;
}

interface History {
  readonly identity: FileIdentity;
  readonly sinceMs: number;
  readonly looks: number;
}

/**
 * Tells which files of an environment are complete: those that did not change over `settleMs` and two looks at least.
 * Of those whose time of change is that old already, when they are first seen, two looks are enough.
 */
export class Settling {
  readonly #settleMs: number;
  #histories = new Map<string, History>();

  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  /**
   * Takes in what a look saw, all of it; what is missing is forgotten. Gives the files to take, in order of arrival: by
   * the time of their last change, then by name. A complete file waits for an earlier one that is not: that one either
   * settles, or changes and is the later one.
   */
  look(files: readonly SeenFile[], now: Moment): SeenFile[] {
    const histories = new Map<string, History>();
    for (const file of files) {
      const key = `${file.folder}/${file.name}`;
      const before = this.#histories.get(key);
      const same = before !== undefined && isSameFile(before.identity, file);
      histories.set(key, {
        identity: same ? before.identity : identityOf(file),
        sinceMs: same ? before.sinceMs : now.monotonicMs,
        looks: same ? before.looks + 1 : 1,
      });
    }
    this.#histories = histories;
    const ordered = files.toSorted(byArrival);
    const end = ordered.findIndex((file) => !this.#isComplete(file, now));
    return end < 0 ? ordered : ordered.slice(0, end);
  }

  #isComplete(file: SeenFile, now: Moment): boolean {
    if (file.marked) return true;
    const history = this.#histories.get(`${file.folder}/${file.name}`);
    return history !== undefined && hasSettled(history, now, this.#settleMs);
  }
}

function hasSettled({ identity, sinceMs, looks }: History, now: Moment, settleMs: number): boolean {
  if (looks < 2) return false;
  const untouchedMs = now.wallMs - Number(identity.modifiedNs / 1_000_000n);
  return now.monotonicMs - sinceMs >= settleMs || untouchedMs >= settleMs;
}

function identityOf({ inode, size, modifiedNs }: FileIdentity): FileIdentity {
  return { inode, size, modifiedNs };
}

function byArrival(a: SeenFile, b: SeenFile): number {
  if (a.modifiedNs !== b.modifiedNs) return a.modifiedNs < b.modifiedNs ? -1 : 1;
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.folder < b.folder ? -1 : 1;
}
