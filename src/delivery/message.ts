import { createHash } from 'node:crypto';

/** A message to one address. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** The same for every try, so that a mail system may notice one that comes twice. */
  readonly messageId: string;
}

/** For what is told under this name to this address. */
export function messageId(name: string, address: string): string {
  return `<${name}-${createHash('sha256').update(address).digest('hex').slice(0, 16)}@sluice>`;
}
