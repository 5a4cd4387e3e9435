import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../src/package-root.ts';
import type { Journal } from '../journal.ts';

export type Role = 'serve' | 'work';

/** A process of `sluice serve` or `sluice work`, which is started again after it was ended. */
export class Member {
  readonly role: Role;
  readonly name: string;
  /** Killed now and then; the others live as long as the soak, so that their memory can be judged. */
  readonly mortal: boolean;
  /** Something is being done to it, or it is not back yet. */
  busy = false;
  readonly #variables: Readonly<Record<string, string>>;
  readonly #logPath: string;
  readonly #journal: Journal;
  #child: ChildProcess | null = null;
  /** Its end is our doing. */
  #doomed = false;

  constructor(
    role: Role,
    name: string,
    options: {
      readonly mortal: boolean;
      readonly variables: Readonly<Record<string, string>>;
      readonly logFolder: string;
      readonly journal: Journal;
    },
  ) {
    this.role = role;
    this.name = name;
    this.mortal = options.mortal;
    this.#variables = options.variables;
    this.#logPath = join(options.logFolder, `${name}.log`);
    this.#journal = options.journal;
  }

  /** `null` while it does not run. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): void {
    const output = openSync(this.#logPath, 'a');
    const child = spawn(process.execPath, [join(packageRoot, 'dist/bundle/main.js'), this.role], {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...this.#variables },
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    this.#child = child;
    this.#doomed = false;
    child.once('exit', (code, signal) => {
      this.#child = null;
      if (this.#doomed) return;
      this.#journal.trouble(`${this.name} ended by itself: ${signal ?? `exit code ${code}`}`);
      this.start();
    });
  }

  /** Without waiting: for when we end ourselves. */
  killAtOnce(): void {
    this.#doomed = true;
    this.#child?.kill('SIGKILL');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  /** Resolves with the exit code, null after a signal, when it is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const child = this.#child;
    if (child === null) return null;
    this.#doomed = true;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = await exited;
    return code as number | null;
  }

  /** A graceful stop, which must end well and in time; what takes longer is killed. */
  async stop(withinMs: number): Promise<void> {
    const timer = setTimeout(() => {
      this.#journal.trouble(`${this.name} had not stopped ${withinMs} ms after SIGTERM`);
      this.#child?.kill('SIGKILL');
    }, withinMs);
    const code = await this.end('SIGTERM');
    clearTimeout(timer);
    if (code !== 0 && code !== null)
      this.#journal.trouble(`${this.name} ended with code ${code} after SIGTERM`);
  }
}
