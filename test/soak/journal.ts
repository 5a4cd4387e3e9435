import { appendFileSync } from 'node:fs';

const maxTroubles = 100;

/** Records what happened, with times, in a file; and what must not have happened, in memory. */
export class Journal {
  /** Sentences; the first hundred of them. */
  readonly troubles: string[] = [];
  readonly #path: string;
  readonly #startedAt = performance.now();

  constructor(path: string) {
    this.#path = path;
  }

  get seconds(): number {
    return (performance.now() - this.#startedAt) / 1_000;
  }

  write(line: string): void {
    appendFileSync(
      this.#path,
      `${new Date().toISOString()} ${this.seconds.toFixed(1).padStart(7)} s  ${line}\n`,
    );
  }

  trouble(sentence: string): void {
    this.write(`TROUBLE: ${sentence}`);
    if (this.troubles.length < maxTroubles)
      this.troubles.push(`at ${this.seconds.toFixed(1)} s: ${sentence}`);
  }
}
