import { extname } from 'node:path';
import type { Logger } from 'pino';
import { Sandboxes } from '../base/sandbox/sandboxes.ts';

export function openSandboxes(log: Logger): Sandboxes {
  // The program is `sandbox.ts` in this folder or, in a build, next to the bundle.
  return new Sandboxes(new URL(`./sandbox${extname(import.meta.url)}`, import.meta.url), log);
}
