import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Inspection,
  inspectFile,
  inspectorWith,
} from '../../../../src/capabilities/inspection/inspect-file.ts';
import { products } from '../../../../src/capabilities/products/products.ts';
import type { LoadEntity } from '../../../../src/domain/entity.ts';
import type { Preset } from '../../../../src/domain/source.ts';
import { createFileSystemStore } from '../../../../src/files/file-system.ts';
import type { ReceiveHints } from '../../../../src/load/receive/receive.ts';

const { rewriter = null } = products;
const limits = { maxUploadBytes: 1e12, maxInflatedBytes: 1e12, minBytesPerSecond: 0, stallMs: 20_000 };

export type InspectionHints = Pick<ReceiveHints, 'map' | 'source' | 'format'> & {
  readonly preset?: Preset | null;
  readonly entity?: LoadEntity;
};

export async function inspectText(
  text: string | Buffer,
  { map = {}, preset = null, entity = 'auto', ...hints }: InspectionHints = {},
): Promise<Inspection> {
  async function* source() {
    yield Buffer.from(text);
  }
  const folder = await mkdtemp(join(tmpdir(), 'inspect-'));
  try {
    const options = { entity, map, preset };
    const { signal } = new AbortController();
    const store = createFileSystemStore(folder);
    return await inspectFile(
      store,
      source(),
      { map, ...hints },
      options,
      limits,
      signal,
      inspectorWith(rewriter),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}
