import { serveTasks } from '../base/sandbox/sandbox.ts';
import { loadTasks } from '../load/sandbox-tasks.ts';
import { capabilities } from '../registry.ts';

/* The program of a sandbox: a separate entry point, without anything that a sandbox does not need. */
const ofCapabilities = await Promise.all(capabilities.map(({ sandboxTasks }) => sandboxTasks?.()));
serveTasks(Object.assign({}, loadTasks, ...ofCapabilities));
