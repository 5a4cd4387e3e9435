import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface NearestFolder {
  readonly folder: string;
  /** Of its disk. */
  readonly device: number;
}

/** The folder, or the first one above it that is there. */
export async function nearestFolder(wanted: string): Promise<NearestFolder> {
  for (let folder = wanted; ; folder = dirname(folder)) {
    try {
      return { folder, device: (await stat(folder)).dev };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}
