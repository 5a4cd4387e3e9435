/*
 * Configures environments from a folder with one file per environment, which can be kept in Git.
 * `sluice apply` reads all files before it changes anything (`files.ts`), then applies each file in
 * one transaction (`apply.ts`). The core and other capabilities add the sections of a file. A
 * second run changes nothing.
 */
import type { Capability } from '../../capability.ts';

export const configuration: Capability = {
  name: 'configuration',
  commands: { apply: async () => (await import('./cli.ts')).apply },
};
