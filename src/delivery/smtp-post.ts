import { createTransport } from 'nodemailer';
import { DeferredError, type Post, RefusedError } from './post.ts';

/** A server that does not answer must not hold up the worker that asks it. */
const timeouts = {
  connectionTimeout: 5_000,
  greetingTimeout: 5_000,
  dnsTimeout: 5_000,
  socketTimeout: 15_000,
};

/** Sends through a mail server, on a connection per message: there are few. */
export function createSmtpPost(smtpUrl: string, from: string): Post {
  const transport = openTransport(smtpUrl, from);
  return {
    async send({ to, subject, text, html, messageId }) {
      try {
        // As objects: a text would be searched for several addresses.
        await transport.sendMail({ to: { name: '', address: to }, subject, text, html, messageId });
      } catch (error) {
        throw translate(error);
      }
    },
    close: () => transport.close(),
  };
}

/** Connects, greets and logs in, and sends nothing. Throws what the server says against it. */
export async function askSmtp(smtpUrl: string): Promise<void> {
  const transport = openTransport(smtpUrl);
  try {
    await transport.verify();
  } catch (error) {
    throw translate(error);
  } finally {
    transport.close();
  }
}

function openTransport(smtpUrl: string, from?: string) {
  const options = {
    url: smtpUrl,
    ...timeouts,
    logger: false,
    debug: false,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  return createTransport(options, from === undefined ? {} : { from });
}

/** Of the error only what the server said: with it come settings, and so the password. */
function translate(error: unknown): Error {
  const { code, command, responseCode, response, message } = error as {
    code?: string;
    command?: string;
    responseCode?: number;
    response?: string;
    message?: string;
  };
  const said = (response ?? message ?? 'the mail server failed').slice(0, 500);
  // What is said of the login or the sender is about our settings, which somebody will mend; 421 is about the server.
  const isOfMessage = code === 'EMESSAGE' || (code === 'EENVELOPE' && command !== 'MAIL FROM');
  if (!isOfMessage || responseCode === undefined || responseCode === 421) return new Error(said);
  return responseCode >= 500 ? new RefusedError(said) : new DeferredError(said);
}
