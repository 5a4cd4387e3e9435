import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/*
 * Personal values that only the requests of a test may contain, and a search for them in all other
 * places.
 */

const marker = 'zq7clear';

/**
 * Returns properties that are hashed or dropped by the rules below. `n` makes the values distinct.
 */
export const clearUser = (n: number | string) => ({
  email: `${marker}.${n}@example.com`,
  phone: `+49 ${marker} ${n}`,
  address: `${marker} Street ${n}`,
  ip: '203.0.113.77',
  birthday: '1987-06-05',
});

export const clearEvent = (n: number | string) => ({ card: `4111 ${marker} ${n}`, ip: '203.0.113.77' });
export const clearCompany = (n: number | string) => ({ contact: `${marker}.${n}@acme.example` });

/** Rules for personal data, and a rule for `level` that a record can break. */
export const personalRules = `users:
  properties:
    email: { personal: hash }
    phone: { personal: drop }
    address: { personal: hash }
    ip: { personal: hash }
    birthday: { personal: drop }
    level: { type: integer, otherwise: refuse }
companies:
  properties:
    contact: { personal: hash }
events:
  properties:
    card: { personal: hash }
    ip: { personal: drop }
`;

export const personalKey = 'a-secret-of-the-tests-for-hashes';

const texts = [marker, '203.0.113.77', '1987-06-05'];
const bytes = [...texts.map((text) => Buffer.from(text)), ...encodings(marker)];

/**
 * Encodes a text in UTF-16, in hex, and in Base64 at each of the three offsets. Omits Base64
 * characters that depend on neighbouring text.
 */
function encodings(text: string): Buffer[] {
  const plain = Buffer.from(text);
  const base64 = [0, 1, 2].map((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), plain])
      .toString('base64')
      .replace(/=+$/, '');
    return Buffer.from(
      encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + plain.length) * 8) / 6)),
    );
  });
  return [Buffer.from(text, 'utf16le'), Buffer.from(plain.toString('hex')), ...base64];
}

export function clearIn(name: string, content: Buffer | string): string[] {
  const allBytes = Buffer.from(content as string);
  const plain = allBytes.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b])) ? gunzipSync(allBytes) : allBytes;
  return bytes.flatMap((needle) => {
    const at = plain.indexOf(needle);
    if (at === -1) return [];
    const around = plain
      .subarray(Math.max(0, at - 120), at + 60)
      .toString('latin1')
      .replace(/[^ -~]+/g, ' ');
    return [`${name} at ${at}: …${around}…`];
  });
}

export async function clearBelow(...folders: readonly string[]): Promise<string[]> {
  const places: string[] = [];
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      // The service may remove a file during the search.
      const content = await readFile(path).catch(() => Buffer.alloc(0));
      places.push(...clearIn(path, content));
    }
  }
  return places;
}
