import { join } from 'node:path';
import { packageRoot } from '../../../src/base/package-root.ts';

export const coreProgram = programIn('core');

/** The program of `npm run build`, or the core alone if the vitest project says so. */
export const program = programIn(process.env['SLUICE_TEST_PROGRAM'] ?? 'bundle');

function programIn(folder: string): string {
  return join(packageRoot, 'dist', folder, 'main.js');
}
