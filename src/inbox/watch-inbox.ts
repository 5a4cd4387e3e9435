import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Environment, listEnvironments } from '../access/environments.ts';
import type { ClaimTools } from './claim.ts';
import { concludeFiles } from './conclude.ts';
import type { Inbox, InboxContext } from './context.ts';
import { Lines } from './lines.ts';
import { Notices } from './notices.ts';
import { Patience } from './patience.ts';
import { findFolder } from './real-folder.ts';
import { EnvironmentWatch } from './watch-environment.ts';

/** What the process that looks after the inbox does, until `signal` tells it to stop. */
export class InboxWatch {
  readonly #context: InboxContext;
  readonly #inbox: Inbox;
  readonly #signal: AbortSignal;
  readonly #lines: Lines;
  readonly #notices: Notices;
  readonly #tools: ClaimTools;
  readonly #concluding = new Patience<string>();
  readonly #looking = new Patience<string>();
  readonly #environments = new Map<string, EnvironmentWatch>();

  constructor(context: InboxContext, inbox: Inbox, signal: AbortSignal) {
    this.#context = context;
    this.#inbox = inbox;
    this.#signal = signal;
    this.#lines = new Lines(context, inbox, signal);
    this.#notices = new Notices(context.log);
    this.#tools = { notices: this.#notices, patience: new Patience() };
  }

  /** Looks into the folder of every environment; what goes wrong in one does not keep it from the others. */
  async look(): Promise<void> {
    const environments = await listEnvironments(this.#context.db);
    await this.#remarkOnOthers(environments);
    for (const environment of environments) {
      if (this.#signal.aborted) return;
      if (this.#looking.isOver(environment.name)) await this.#lookInto(environment);
    }
    this.#notices.endRound();
  }

  /** Takes in what is claimed, and concludes what has ended. */
  async goOn(): Promise<void> {
    await this.#lines.start();
    await concludeFiles(this.#context, this.#inbox, this.#concluding, this.#signal);
  }

  /** Resolves when nothing is under way any more, after the signal. */
  async ended(): Promise<void> {
    await this.#lines.ended();
  }

  async #lookInto(environment: Environment): Promise<void> {
    const { name } = environment;
    const watch =
      this.#environments.get(name) ??
      new EnvironmentWatch(this.#context, this.#inbox, environment, this.#tools);
    this.#environments.set(name, watch);
    try {
      await watch.look();
      this.#looking.succeeded(name);
    } catch (error) {
      const waitMs = this.#looking.failed(name);
      const fields = { err: error, environment: name, wait_ms: waitMs };
      this.#context.log.warn(
        fields,
        'inbox: an environment cannot be looked into now; it will be tried again',
      );
    }
  }

  async #remarkOnOthers(environments: readonly Environment[]): Promise<void> {
    const known = new Set(environments.map(({ name }) => name));
    for (const name of await readdir(this.#inbox.path)) {
      if (name.startsWith('.')) continue;
      const path = join(this.#inbox.path, name);
      const isFolder = (await findFolder(path)) !== null;
      if (known.has(name) && isFolder) continue;
      this.#notices.warn(path, known.has(name) ? notReal : isFolder ? unknownEnvironment : noEnvironment);
    }
  }
}

const notReal = 'is left alone: the folder of an environment must be a folder, not a link to one';
const unknownEnvironment =
  'is left alone: there is no environment of that name; create it with `sluice env create <name>`, or rename the folder';
const noEnvironment = 'is left alone: files go into the folder of an environment, such as default/';
