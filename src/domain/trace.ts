export interface SpanIdentity {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

export function writeTraceparent({ traceId, spanId, isSampled }: SpanIdentity): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

const form = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

export function readTraceparent(text: string | null | undefined): SpanIdentity | null {
  const found = form.exec(text ?? '');
  if (found === null) return null;
  const [, traceId = '', spanId = '', flags = ''] = found;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
