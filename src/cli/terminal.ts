import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** The one way to speak to the user: results on standard output, everything else on standard error. */
export interface Terminal {
  /** A line of the result. */
  print(text: string): void;
  /** Part of the result as it is, without a line end. Resolves when the reader can take more. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** A line beside the result: progress, hints, complaints. */
  inform(text: string): void;
  json(value: unknown): void;
  /** Coloured or not, as standard output can show. */
  style(style: Style, text: string): string;
  /** A person looks at standard error now, so that a moving line makes sense there. */
  readonly live: boolean;
  /** Nobody reads the result any more (`| head`): long output may end. */
  readonly closed: boolean;
}

export function createTerminal(processEnv: Readonly<Record<string, string | undefined>>): Terminal {
  const { stdout, stderr } = process;
  const dumb = processEnv['TERM'] === 'dumb';
  const colour = stdout.isTTY === true && !dumb && (processEnv['NO_COLOR'] ?? '') === '';
  const gone = new Set<NodeJS.WriteStream>();
  for (const stream of [stdout, stderr]) {
    // A reader that went away is no error of ours; work that is under way goes on.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      gone.add(stream);
      if (error.code !== 'EPIPE') process.exitCode = 1;
    });
  }
  const put = (stream: NodeJS.WriteStream, text: string | Uint8Array): boolean =>
    gone.has(stream) || stream.write(text);
  return {
    print: (text) => void put(stdout, `${text}\n`),
    async write(bytes) {
      if (!put(stdout, bytes)) await drained(stdout);
    },
    inform: (text) => void put(stderr, `${text}\n`),
    json: (value) => void put(stdout, `${JSON.stringify(value, null, stdout.isTTY ? 2 : undefined)}\n`),
    style: (style, text) => (colour ? styleText(style, text) : text),
    live: stderr.isTTY === true && !dumb,
    get closed() {
      return gone.has(stdout);
    },
  };
}

/** Resolves when more can be written, or when nobody is there to read it. */
function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('error', done).off('close', done);
      resolve();
    };
    stream.on('drain', done).on('error', done).on('close', done);
  });
}
