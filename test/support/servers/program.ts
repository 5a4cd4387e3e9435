import { join } from 'node:path';
import { packageRoot } from '../../../src/base/package-root.ts';

export const coreProgram = programIn('core');

/**
 * Path of the program that `npm run build` created. A vitest project may choose the program without
 * capabilities.
 */
export const program = programIn(process.env['SLUICE_TEST_PROGRAM'] ?? 'bundle');

function programIn(folder: string): string {
  return join(packageRoot, 'dist', folder, 'main.js');
}
