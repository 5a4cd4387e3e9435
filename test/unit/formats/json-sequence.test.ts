import { expect, it } from 'vitest';
import { sequenceToNdjson } from '../../../src/formats/json-lines.ts';
import { bytewise, collect, inPieces } from './in-pieces.ts';

it('adjacent values of one byte are one line each', async () => {
  const convert = async (text: string, ends: readonly number[] = []) => {
    const lines = await collect(sequenceToNdjson(inPieces(Buffer.from(text), ends)));
    return lines.toString().trimEnd().split('\n');
  };
  for (const unit of [['0'], ['1', '{}'], ['""'], ['0', '""', '[]']]) {
    const values = Array.from({ length: 300 }, () => unit).flat();
    const text = values.join('');
    expect(await convert(text)).toEqual(values);
    expect(await convert(text, bytewise(Buffer.from(text)))).toEqual(values);
  }
});
