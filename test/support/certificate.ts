import { generateKeyPairSync, sign } from 'node:crypto';

/** A certificate for 127.0.0.1 and localhost that signs itself, good for a day; PEM. */
export function createCertificate(): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(hex('06082a8648ce3d040302'));
  const name = sequence(tagged(0x31, sequence(hex('0603550403'), tagged(0x0c, Buffer.from('localhost')))));
  const names = sequence(tagged(0x82, Buffer.from('localhost')), tagged(0x87, Buffer.from([127, 0, 0, 1])));
  const alternatives = sequence(hex('0603551d11'), tagged(0x04, names));
  const authority = sequence(hex('0603551d13'), hex('0101ff'), tagged(0x04, sequence(hex('0101ff'))));
  const body = sequence(
    tagged(0xa0, hex('020102')),
    tagged(0x02, Buffer.from([1])),
    algorithm,
    name,
    sequence(time(-60), time(24 * 60)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(alternatives, authority)),
  );
  const signature = tagged(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]));
  const lines =
    sequence(body, algorithm, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex');
}

function time(minutes: number): Buffer {
  const text = new Date(Date.now() + minutes * 60_000).toISOString();
  return tagged(0x18, Buffer.from(`${text.slice(0, 19).replace(/[-:T]/g, '')}Z`));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
