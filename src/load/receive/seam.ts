import type { LoadOptions } from '../../domain/load.ts';
import type { Preset, SourceOptions } from '../../domain/source.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { Recognise } from '../map/foreign.ts';
import type { ReceivedFile } from './received-file.ts';

export interface RewriteSeam {
  readonly recognise: Recognise;
  /**
   * Checks the options of a load. Called for loads with and without a preset.
   * @throws InputError
   */
  requireFitting(options: Pick<LoadOptions, 'preset' | 'source'>): void;
  /**
   * Yields the records of a received file as NDJSON in our format, some lines at a time. Each
   * record keeps its row and line. A record can have an additional member: the profiles that the
   * preset derived from it, or the reason for refusing it.
   */
  rewrite(
    files: Pick<FileStore, 'readRange'>,
    received: ReceivedFile,
    preset: Preset,
    source: SourceOptions,
  ): AsyncIterable<Buffer>;
}
