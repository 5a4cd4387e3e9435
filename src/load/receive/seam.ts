import type { LoadOptions } from '../../domain/load.ts';
import type { Preset, SourceOptions } from '../../domain/source.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { Recognise } from '../map/foreign.ts';
import type { ReceivedFile } from './received-file.ts';

export interface RewriteSeam {
  readonly recognise: Recognise;
  /** Checks the options of a load, whether or not it has a preset. @throws InputError */
  requireFitting(options: Pick<LoadOptions, 'preset' | 'source'>): void;
  /**
   * Yields a received file as our NDJSON, some lines at a time. Each record keeps its row and line.
   * Additional members of a record contain the profiles that the record implies, or the reason for
   * refusing it.
   */
  rewrite(
    files: Pick<FileStore, 'readRange'>,
    received: ReceivedFile,
    preset: Preset,
    source: SourceOptions,
  ): AsyncIterable<Buffer>;
}
