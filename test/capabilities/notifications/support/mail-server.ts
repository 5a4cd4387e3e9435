import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly source: string;
}

export interface MailServer {
  readonly port: number;
  /** URL of the form smtp://127.0.0.1:port. */
  readonly url: string;
  readonly mails: readonly Mail[];
  stop(): Promise<void>;
}

/**
 * Starts a mail server. `answer` returns the code with which a recipient is refused, or `null` if
 * the recipient is accepted. If `sender` is set, every sender is refused with this code.
 */
export async function startMailServer(
  options: {
    readonly port?: number;
    readonly answer?: (address: string) => number | null;
    readonly sender?: number;
  } = {},
): Promise<MailServer> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onMailFrom(_address, _session, done) {
      if (options.sender === undefined) done();
      else done(Object.assign(new Error('not you'), { responseCode: options.sender }));
    },
    onRcptTo({ address }, _session, done) {
      const code = options.answer?.(address) ?? null;
      if (code === null) done();
      else done(Object.assign(new Error('not here'), { responseCode: code }));
    },
    onData(stream, { envelope }, done) {
      let source = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        source += text;
      });
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        mails.push({ from, to: envelope.rcptTo.map(({ address }) => address), source });
        done();
      });
    },
  });
  server.on('error', () => undefined);
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    mails,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
