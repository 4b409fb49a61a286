// Adds up vitest's JSON reports, names each test that failed, and prints the sum as the last line; fails when a test failed,
// was skipped, or none ran.
import { readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
let skipped = 0;

/** Prints one failure once more, so that the end of a long log tells which test it was. */
function tell(file, name, message) {
  failed += 1;
  console.log(`failed: ${file} > ${name}\n${(message ?? '').split('\n').slice(0, 30).join('\n')}\n`);
}

for (const file of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  passed += report.numPassedTests;
  skipped += report.numPendingTests + report.numTodoTests;
  for (const { name, status, message, assertionResults } of report.testResults) {
    const failures = assertionResults.filter((test) => test.status === 'failed');
    for (const { fullName, failureMessages } of failures) tell(name, fullName, failureMessages.join('\n'));
    if (status === 'failed' && failures.length === 0) tell(name, '(the file itself)', message);
  }
}
if (skipped > 0) console.log(`${skipped} tests were skipped.`);
console.log(`tests: ${passed} passed, ${failed} failed`);
process.exit(failed > 0 || skipped > 0 || passed === 0 ? 1 : 0);
