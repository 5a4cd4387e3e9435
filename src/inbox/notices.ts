import type { Logger } from 'pino';

/** Says a thing once for as long as it lasts. */
export class Notices {
  readonly #log: Logger;
  #said = new Set<string>();
  #current = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  warn(path: string, why: string): void {
    const notice = JSON.stringify([path, why]);
    if (!this.#said.has(notice) && !this.#current.has(notice)) this.#log.warn({ path }, `inbox: ${why}`);
    this.#current.add(notice);
  }

  /** A round of looking is over: what was not met in it may be said again. */
  endRound(): void {
    this.#said = this.#current;
    this.#current = new Set();
  }
}
