import { extname } from 'node:path';
import type { Logger } from 'pino';
import { Sandboxes } from '../base/sandbox/sandboxes.ts';

export function openSandboxes(log: Logger): Sandboxes {
  // The program is beside this file in the sources, and beside the bundle that contains this file.
  return new Sandboxes(new URL(`./sandbox${extname(import.meta.url)}`, import.meta.url), log);
}
