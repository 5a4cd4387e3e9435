/**
 * Runs commands of `sluice` one after another in one process, because a process for each command
 * would spend a second on loading the program. `command-host.ts` starts this module with the path
 * of the program and of a socket.
 *
 * A request is a sequence of strings, each followed by a NUL: the paths of standard input, standard
 * output and standard error, the working directory, the number of words in the command line, these
 * words, and the environment variables. The response is the exit code.
 */
import { closeSync, createReadStream, openSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const [program = '', socket = ''] = process.argv.slice(2);
const end = process.exit;
process.stdin.resume().on('end', () => {
  rmSync(socket, { force: true });
  end();
});
// Each command adds listeners to this process, and nothing removes them. Without this line, Node
// would warn about their number.
process.setMaxListeners(0);

let count = 0;
let last = Promise.resolve();

createServer(async (request, response) => {
  const fields = (await buffer(request)).toString().split('\0');
  last = last.then(async () => void response.end(String(await run(fields))));
}).listen(socket, () => process.stdout.write('ready'));

/** @param {readonly string[]} fields */
async function run([stdin = '', stdout = '', stderr = '', cwd = '', words = '', ...rest]) {
  process.chdir(cwd);
  process.argv = [process.execPath, program, ...rest.slice(0, Number(words))];
  const variables = rest.slice(Number(words)).filter((line) => line.includes('='));
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const line of variables) {
    const at = line.indexOf('=');
    process.env[line.slice(0, at)] = line.slice(at + 1);
  }
  process.exitCode = undefined;
  const outputs = [stdout, stderr].map((path) => openSync(path, 'a'));
  let input;
  const streams = {
    stdin: { get: () => (input ??= createReadStream(stdin)) },
    stdout: { value: writerTo(outputs[0]) },
    stderr: { value: writerTo(outputs[1]) },
  };
  for (const [name, property] of Object.entries(streams)) {
    Object.defineProperty(process, name, { configurable: true, ...property });
  }
  const listeners = process.listeners('exit');
  let code;
  process.exit = (given) => {
    code ??= given;
  };
  await import(`${pathToFileURL(program)}?${count++}`);
  await new Promise((resolve) => process.stdout.write('', resolve));
  code ??= process.exitCode ?? 0;
  for (const listener of process.listeners('exit')) {
    if (listeners.includes(listener)) continue;
    listener(code);
    process.off('exit', listener);
  }
  input?.destroy();
  for (const output of outputs) closeSync(output);
  return code;
}

/** Writes synchronously, so that the outputs keep their order if both go to the same file. */
function writerTo(file) {
  return new Writable({
    write(chunk, _, done) {
      try {
        for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at);
        done();
      } catch (error) {
        done(error);
      }
    },
  });
}
