/*
 * Configures environments from a folder with one file per environment. The folder can be kept in
 * Git. `sluice apply` reads all files before it changes anything, then applies each file in one
 * transaction. A second run changes nothing.
 */
import type { Capability } from '../../capability.ts';

export const configuration: Capability = {
  name: 'configuration',
  commands: { apply: async () => (await import('./cli.ts')).apply },
};
