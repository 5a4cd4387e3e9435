/*
 * Configuration of environments in a folder, with a file for each, so that it can live in Git.
 * `sluice apply` reads all files before it changes anything (`files.ts`), compares each with what
 * is stored, and applies it in one transaction (`apply.ts`). The core and other capabilities have
 * the sections that a file can declare. A second run changes nothing.
 */
import type { Capability } from '../../capability.ts';

export const configuration: Capability = {
  name: 'configuration',
  commands: { apply: async () => (await import('./cli.ts')).apply },
};
