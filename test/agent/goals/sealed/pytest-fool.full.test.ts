import { testThatTheyFool } from './trick-runs.js'
import { pytestTricks } from './tricks/pytest.js'

testThatTheyFool('tricks against pytest work where only the exit code counts', pytestTricks)
