import { join } from 'node:path';
import { type InboxFolder, type InboxOptions, inboxFolders } from '../../domain/inbox.ts';
import type { Environment } from '../../postgres/stores/environments.ts';
import { type ClaimTools, claimFiles, putBackOrphans } from './claimed-file.ts';
import {
  ensureFolder,
  findFolder,
  isInTheWay,
  lookInto,
  type Moment,
  offerFolder,
  type SeenFile,
  StableFiles,
} from './folders.ts';
import type { DropFolder, Inbox, InboxContext } from './inbox.ts';
import { FolderMapping } from './mapping.ts';

/** A process's memory of an environment's folders between two looks. */
export class EnvironmentWatch {
  readonly #context: InboxContext;
  readonly #inbox: Inbox;
  readonly #environment: Environment;
  readonly #tools: ClaimTools;
  readonly #stable: StableFiles;
  readonly #mappings: ReadonlyMap<InboxFolder, FolderMapping>;
  #begun = false;

  constructor(context: InboxContext, inbox: Inbox, environment: Environment, tools: ClaimTools) {
    const { inboxStableMs } = context.config;
    this.#context = context;
    this.#inbox = inbox;
    this.#environment = environment;
    this.#tools = tools;
    this.#stable = new StableFiles(inboxStableMs);
    this.#mappings = new Map(inboxFolders.map((each) => [each, new FolderMapping(each, inboxStableMs)]));
  }

  /** Looks into its folders, and claims what is complete. */
  async look(): Promise<void> {
    if (!this.#begun) await this.#begin();
    const now: Moment = { monotonicMs: performance.now(), wallMs: Date.now() };
    const files: SeenFile[] = [];
    const options = new Map<InboxFolder, InboxOptions>();
    for (const [folder, mapping] of this.#mappings) {
      const found = await this.#find(folder);
      if (found === null) continue;
      const view = await lookInto(found);
      for (const { name, why } of view.ignored) this.#tools.warnings.warn(join(found.path, name), why);
      const own = await mapping.look(found.path, view.mapping, now, this.#tools.warnings);
      if (own === null) continue;
      options.set(folder, own);
      files.push(...view.files.map((file) => ({ ...file, folder })));
    }
    const ready = this.#stable.look(files, now);
    await claimFiles(this.#context, this.#inbox, this.#environment, ready, options, this.#tools);
  }

  get #path(): string {
    return join(this.#inbox.path, this.#environment.name);
  }

  async #begin(): Promise<void> {
    await ensureFolder(this.#path);
    for (const folder of inboxFolders) if (folder !== '') await offerFolder(join(this.#path, folder));
    for (const folder of inboxFolders) {
      await putBackOrphans(this.#context, this.#inbox, this.#environment.name, folder);
    }
    this.#begun = true;
  }

  /** Finds a folder, which must be on one file system, since renaming does not lead across. */
  async #find(folder: InboxFolder): Promise<DropFolder | null> {
    const path = join(this.#path, folder);
    const found = await findFolder(path);
    if (folder === '') return found;
    if (found === null) {
      if (await isInTheWay(path)) this.#tools.warnings.warn(path, notReal);
      return null;
    }
    const own = await findFolder(this.#path);
    if (own?.device === found.device) return found;
    this.#tools.warnings.warn(path, 'is left alone: it lies on another file system than its environment');
    return null;
  }
}

/** `cp a.csv inbox/default/users` makes a file of that name, where there is no such folder. */
const notReal = 'is left alone: it is to be a folder, not a file or a link; rename it, and make the folder';
